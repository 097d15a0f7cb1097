// SPDX-License-Identifier: Apache-2.0
// dropout, dropout2d, dropout3d, alpha_dropout. Whether a program trains or
// evaluates is an attribute of the dropout ops alone (is_test).
#include <cmath>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

constexpr char kUpscale[] = "upscale_in_train";
constexpr char kDowngrade[] = "downgrade_in_infer";

// `axes` empty: every value is drawn by itself.
absl::StatusOr<std::string> AppendDropout(LayerContext* c, const std::string& x,
                                          double p, const char* how,
                                          Ints axes = {}) {
  OpDesc op;
  op.type = axes.empty() ? "dropout" : "dropout_nd";
  op.SetInput("X", {x});
  op.attrs = {{"dropout_prob", static_cast<float>(p)},
              {"is_test", false},
              {"dropout_implementation", std::string(how)}};
  if (!axes.empty()) op.attrs["axis"] = std::move(axes);
  return c->Append(std::move(op), {"Out", "Mask"});
}

absl::StatusOr<std::string> BuildDropout(LayerContext* c) {
  const job::Dropout& p = c->layer().dropout();
  const int rank = static_cast<int>(c->shape().size());
  for (const int32_t axis : p.axis())
    if (axis >= rank)
      return InvalidArgument("an 'axis' is %d; the input has %d axes", axis,
                             rank);
  return AppendDropout(
      c, c->input(), p.p(),
      p.mode() == job::Dropout::upscale_in_train ? kUpscale : kDowngrade,
      Ints(p.axis().begin(), p.axis().end()));
}

// Whole channels become zero.
template <typename P>
absl::StatusOr<std::string> ChannelDropout(LayerContext* c, const P& p,
                                           int axes) {
  const Space space = {axes, p.data_format() != 0};
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  return AppendDropout(c, c->input(), p.p(), kUpscale,
                       {0, space.channel_axis()});
}

absl::StatusOr<std::string> BuildChannelDropout(LayerContext* c) {
  const job::Layer& l = c->layer();
  return l.has_dropout2d() ? ChannelDropout(c, l.dropout2d(), 2)
                           : ChannelDropout(c, l.dropout3d(), 3);
}

// A variable like `x` full of ones; [1] for no x.
absl::StatusOr<std::string> Ones(LayerContext* c, const std::string& x) {
  OpDesc op;
  op.type = "fill_constant";
  op.attrs = {{"value", 1.0f}, {"dtype", static_cast<int32_t>(c->dtype())}};
  if (x.empty()) {
    op.attrs["shape"] = std::vector<int64_t>{1};
    op.attrs["str_value"] = std::string("1");
  } else {
    op.type = "fill_any_like";
    op.SetInput("X", {x});
  }
  return c->Append(std::move(op), {"Out"});
}

// Training gives a * (x where kept, else alpha') + b, where alpha' is what SELU
// gives far below zero and a, b keep mean 0 and variance 1; evaluation gives x.
// With `kept` = 1 / (1 - p) where kept, else 0, and 1 everywhere in evaluation,
// and `test` = 0 in training and 1 in evaluation:
//   x * kept * (a (1 - p) + (1 - a (1 - p)) test)
//   + (a alpha' + b - a alpha' (1 - p) kept) * (1 - test)
absl::StatusOr<std::string> BuildAlphaDropout(LayerContext* c) {
  const double p = c->layer().alpha_dropout().p();
  if (p == 1) return AppendDropout(c, c->input(), 1, kUpscale);
  constexpr double kFloor =
      -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  const double a = 1 / std::sqrt((1 - p) * (1 + p * kFloor * kFloor));
  const double b = -a * kFloor * p;
  PD_ASSIGN_OR_RETURN(const std::string ones, Ones(c, c->input()));
  PD_ASSIGN_OR_RETURN(const std::string kept,
                      AppendDropout(c, ones, p, kUpscale));
  PD_ASSIGN_OR_RETURN(const std::string one, Ones(c, ""));
  PD_ASSIGN_OR_RETURN(const std::string test,
                      AppendDropout(c, one, 1, kUpscale));
  const double factor = a * (1 - p);
  PD_ASSIGN_OR_RETURN(const std::string slope,
                      Scale(c, test, 1 - factor, factor));
  PD_ASSIGN_OR_RETURN(const std::string train, Scale(c, test, -1, 1));
  PD_ASSIGN_OR_RETURN(const std::string masked,
                      c->Binary("elementwise_mul", c->input(), kept));
  PD_ASSIGN_OR_RETURN(const std::string scaled,
                      c->Binary("elementwise_mul", masked, slope));
  PD_ASSIGN_OR_RETURN(const std::string offset,
                      Scale(c, kept, -kFloor * factor, a * kFloor + b));
  PD_ASSIGN_OR_RETURN(const std::string shift,
                      c->Binary("elementwise_mul", offset, train));
  return c->Binary("elementwise_add", scaled, shift);
}

}  // namespace

void AddDropoutLayers(LayerTable* table) {
  (*table)[job::Layer::kDropout] = {BuildDropout};
  (*table)[job::Layer::kDropout2D] = {BuildChannelDropout};
  (*table)[job::Layer::kDropout3D] = {BuildChannelDropout};
  (*table)[job::Layer::kAlphaDropout] = {BuildAlphaDropout};
}

}  // namespace pd
