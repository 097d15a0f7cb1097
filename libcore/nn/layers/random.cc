// SPDX-License-Identifier: Apache-2.0
// Layers that draw random numbers, and detach. Numbers that have the shape of
// another tensor are drawn by the ops that take the batch's extent from it, so
// that all others stay known.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

constexpr float kEulerGamma = 0.57721566f;  // mean of Gumbel's distribution

// The shape and dtype of what is drawn: those of `like`, or as given.
struct Drawn {
  std::string like;  // a variable; "" for none
  Shape shape;
  DType dtype = DType::kFloat32;
};

template <typename P>
absl::StatusOr<Drawn> WhatIsDrawn(const P& p, const std::string& like,
                                  const LayerContext& c) {
  Drawn drawn;
  if (!like.empty()) drawn.dtype = c.TypeOf(like);
  if (p.has_dtype()) drawn.dtype = static_cast<DType>(p.dtype());
  if (!IsFloating(drawn.dtype))
    return InvalidArgument("%s draws float32 or float64; 'dtype' is %s",
                           c.kind(), Name(drawn.dtype));
  drawn.shape.assign(p.shape().begin(), p.shape().end());
  if (c.input_count() > 0 && (!drawn.shape.empty() || like != c.input()))
    return InvalidArgument(
        "%s has its shape from a field and reads no input; leave 'input' out",
        c.kind());
  if (!drawn.shape.empty()) return drawn;
  if (like.empty())
    return InvalidArgument(
        "%s needs 'shape', or a layer whose result has the shape", c.kind());
  drawn.like = like;
  drawn.shape = c.ShapeOf(like);
  return drawn;
}

// An op that makes numbers of a shape: `type` ("gaussian_random"), or where
// the batch's extent is open `type`_batch_size_like.
absl::StatusOr<std::string> Make(const std::string& type, const Drawn& drawn,
                                 std::map<std::string, Attribute> attrs,
                                 LayerContext* c) {
  OpDesc op;
  op.type = type;
  op.attrs = std::move(attrs);
  op.attrs["dtype"] = static_cast<int32_t>(drawn.dtype);
  const auto open = std::count(drawn.shape.begin(), drawn.shape.end(), -1);
  if (open == 0) {
    op.attrs["shape"] = std::vector<int64_t>(drawn.shape);
    return c->Append(std::move(op), {"Out"});
  }
  if (open == 1) {
    const auto axis = static_cast<int32_t>(
        std::find(drawn.shape.begin(), drawn.shape.end(), -1) -
        drawn.shape.begin());
    op.type += "_batch_size_like";
    op.SetInput("Input", {drawn.like});
    op.attrs["shape"] = Ints(drawn.shape.begin(), drawn.shape.end());
    op.attrs["input_dim_idx"] = axis;
    op.attrs["output_dim_idx"] = axis;
    return c->Append(std::move(op), {"Out"});
  }
  OpDesc shape;
  shape.type = "shape";
  shape.SetInput("Input", {drawn.like});
  PD_ASSIGN_OR_RETURN(const std::string extents,
                      c->Append(std::move(shape), {"Out"}));
  op.SetInput("ShapeTensor", {extents});
  return c->Append(std::move(op), {"Out"});
}

// The same number everywhere.
absl::StatusOr<std::string> Everywhere(double value, const Drawn& drawn,
                                       LayerContext* c) {
  return Make("fill_constant", drawn,
              {{"value", static_cast<float>(value)},
               {"str_value", absl::StrFormat("%.9g", value)}},
              c);
}

absl::StatusOr<std::string> Uniform(double min, double max, const Drawn& drawn,
                                    LayerContext* c) {
  return Make(
      "uniform_random", drawn,
      {{"min", static_cast<float>(min)}, {"max", static_cast<float>(max)}}, c);
}

// Whether the layer gives its mean in the form that is built.
template <typename P>
bool GivesMean(const P& p, LayerContext* c) {
  return p.in_evaluation() == job::InEvaluation::mean && c->Evaluates();
}

// The layer that says the shape: the first input, if there is one.
std::string FirstInput(const LayerContext& c) {
  return c.input_count() > 0 ? c.input() : std::string();
}

absl::StatusOr<std::string> BuildNormal(LayerContext* c) {
  const job::RandomNormal& p = c->layer().normal();
  const LayerInput* mean = c->Named("mean_of");
  const LayerInput* std = c->Named("std_of");
  for (const auto& [number, layer, field] :
       {std::make_tuple(p.has_mean(), mean, "mean"),
        std::make_tuple(p.has_std(), std, "std")})
    if (number && layer != nullptr)
      return InvalidArgument("'%s' and '%s_of' say the same; leave one out",
                             field, field);
  const LayerInput* like = mean != nullptr ? mean : std;
  PD_ASSIGN_OR_RETURN(
      const Drawn drawn,
      WhatIsDrawn(p, like != nullptr ? like->variable : FirstInput(*c), *c));
  if (GivesMean(p, c))
    return mean != nullptr ? mean->variable : Everywhere(p.mean(), drawn, c);
  const bool plain = mean == nullptr && std == nullptr;
  PD_ASSIGN_OR_RETURN(
      std::string noise,
      Make("gaussian_random", drawn,
           {{"mean", plain ? static_cast<float>(p.mean()) : 0.0f},
            {"std", std != nullptr ? 1.0f : static_cast<float>(p.std())}},
           c));
  if (std != nullptr) {
    PD_ASSIGN_OR_RETURN(noise,
                        c->Binary("elementwise_mul", noise, std->variable));
  }
  if (mean != nullptr)
    return c->Binary("elementwise_add", noise, mean->variable);
  return plain || p.mean() == 0 ? noise : Scale(c, noise, 1, p.mean());
}

absl::StatusOr<std::string> BuildUniform(LayerContext* c) {
  const job::RandomUniform& p = c->layer().uniform();
  if (p.min() > p.max())
    return InvalidArgument("'min' is %g and 'max' %g; expected min <= max",
                           p.min(), p.max());
  PD_ASSIGN_OR_RETURN(const Drawn drawn, WhatIsDrawn(p, FirstInput(*c), *c));
  return GivesMean(p, c) ? Everywhere((p.min() + p.max()) / 2, drawn, c)
                         : Uniform(p.min(), p.max(), drawn, c);
}

absl::StatusOr<std::string> BuildBernoulli(LayerContext* c) {
  if (GivesMean(c->layer().bernoulli(), c)) return c->input();
  return c->Unary("bernoulli", c->input());
}

absl::StatusOr<std::string> BuildGumbel(LayerContext* c) {
  const job::RandomGumbel& p = c->layer().gumbel();
  PD_ASSIGN_OR_RETURN(const Drawn drawn, WhatIsDrawn(p, FirstInput(*c), *c));
  if (GivesMean(p, c))
    return Everywhere(p.loc() + p.scale() * kEulerGamma, drawn, c);
  // Above 0, below 1: both logarithms are finite.
  PD_ASSIGN_OR_RETURN(std::string u,
                      Uniform(std::numeric_limits<float>::min(), 1, drawn, c));
  PD_ASSIGN_OR_RETURN(u, c->Unary("log", u));
  PD_ASSIGN_OR_RETURN(u, Scale(c, u, -1, 0));
  PD_ASSIGN_OR_RETURN(u, c->Unary("log", u));
  return Scale(c, u, -p.scale(), p.loc());
}

absl::StatusOr<std::string> BuildDetach(LayerContext* c) {
  PD_ASSIGN_OR_RETURN(const std::string result,
                      c->Unary("share_data", c->input()));
  c->main()->MutableVar(result)->stop_gradient = true;
  return result;
}

// Without a shape of its own the layer before it says the shape.
template <typename P>
bool TakesShape(const P& p) {
  return p.shape().empty();
}

bool RandomTakesInput(const job::Layer& layer, const OpRegistry& /*registry*/) {
  switch (layer.kind_case()) {
    case job::Layer::kNormal:
      return TakesShape(layer.normal()) && !layer.normal().has_mean_of() &&
             !layer.normal().has_std_of();
    case job::Layer::kUniform:
      return TakesShape(layer.uniform());
    default:
      return TakesShape(layer.gumbel());
  }
}

}  // namespace

void AddRandomLayers(LayerTable* table) {
  using L = job::Layer;
  (*table)[L::kNormal] = {BuildNormal, 0, 1, RandomTakesInput};
  (*table)[L::kUniform] = {BuildUniform, 0, 1, RandomTakesInput};
  (*table)[L::kGumbel] = {BuildGumbel, 0, 1, RandomTakesInput};
  (*table)[L::kBernoulli] = {BuildBernoulli};
  (*table)[L::kDetach] = {BuildDetach};
}

}  // namespace pd
