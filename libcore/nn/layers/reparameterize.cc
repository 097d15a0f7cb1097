// SPDX-License-Identifier: Apache-2.0
// weight_norm and spectral_norm of a ParamAttr: parameters that layers compute
// with but that are made of others in every step, as paddle.nn.utils' functions
// of these names do it.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_context.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

using Ints = std::vector<int32_t>;

// A parameter that `request` is made of: `request` with `suffix` behind its
// name.
ParameterRequest PartOf(const ParameterRequest& request, const char* suffix) {
  ParameterRequest part = request;
  part.attr.clear_weight_norm();
  part.attr.clear_spectral_norm();
  if (part.attr.has_name()) part.attr.set_name(part.attr.name() + suffix);
  part.name += suffix;
  return part;
}

// All axes of `shape` but `axis`.
Ints Others(const Shape& shape, int axis) {
  Ints others;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i)
    if (i != axis) others.push_back(i);
  return others;
}

// The length of x over `axes`, which keep extent 1; none: of each element.
std::string Length(const std::string& x, const Ints& axes, double least,
                   OpChain* chain) {
  const std::string length =
      axes.empty() ? chain->Unary("abs", x)
                   : chain->Reduce("frobenius_norm", x, axes, true);
  return chain->Unary("clip", length,
                      {{"min", static_cast<float>(least)},
                       {"max", std::numeric_limits<float>::max()}});
}

// Writes what `chain` has made into a variable that there is.
void Into(const char* type, const std::string& x, const std::string& variable,
          OpChain* chain) {
  if (!chain->ok()) return;
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.SetOutput("Out", {variable});
  chain->Update(chain->main()->Append(std::move(op)));
}

// g's first values: the lengths of v, with PaddlePaddle's epsilon.
absl::Status MeasureLengths(const std::string& v, const Ints& axes,
                            const std::string& g, BlockBuilder* startup) {
  OpChain chain(startup);
  std::string sum = chain.Unary("square", v);
  if (!axes.empty()) sum = chain.Reduce("reduce_sum", sum, axes);
  Into("sqrt", chain.Scale(sum, 1, 1e-12), g, &chain);
  return chain.Give("").status();
}

std::string Product(const std::string& matrix, const std::string& vector,
                    bool transposed, OpChain* chain) {
  return chain->Op("matmul_v2", {{"X", matrix}, {"Y", vector}}, {"Out"},
                   {{"trans_x", transposed}, {"trans_y", false}});
}

// `weight` as a matrix whose rows are the slices of axis `dim`.
std::string AsMatrix(const std::string& weight, const Shape& shape, int dim,
                     OpChain* chain) {
  std::string matrix = weight;
  if (dim != 0) {
    Ints order = {dim};
    for (const int32_t other : Others(shape, dim)) order.push_back(other);
    matrix = chain->Op("transpose2", {{"X", matrix}}, {"Out", "XShape"},
                       {{"axis", order}});
  }
  return chain->Reshape(
      matrix, {static_cast<int32_t>(shape[static_cast<size_t>(dim)]), -1});
}

bool HasColumns(const std::string& kind) {
  return kind == "linear" || kind == "conv1d_transpose" ||
         kind == "conv2d_transpose" || kind == "conv3d_transpose";
}

}  // namespace

absl::StatusOr<std::string> LayerContext::WeightNorm(
    const ParameterRequest& request) {
  const Shape& shape = request.shape;
  const int rank = static_cast<int>(shape.size());
  int dim = request.attr.weight_norm().dim();
  if (request.attr.has_spectral_norm())
    return InvalidArgument("'weight_norm' and 'spectral_norm' are both given");
  if (dim < -rank || dim >= rank)
    return InvalidArgument("'dim' of weight_norm is %d; '%s' has %d axes", dim,
                           request.name, rank);
  const bool whole = dim == -1;
  if (dim < 0) dim += rank;
  const Ints axes = Others(shape, whole ? rank : dim);
  // PaddlePaddle makes v and g, two weights, beside the parameter, which it
  // then drops.
  ParameterRequest directions = PartOf(request, "_v");
  directions.as_weight = true;
  const bool made = FindParameter(directions.name) != nullptr;
  if (!made && !request.attr.has_name()) PaddleName(request.bias);
  PD_ASSIGN_OR_RETURN(const std::string v, Plain(directions));
  ParameterRequest lengths = PartOf(request, "_g");
  lengths.as_weight = true;
  lengths.shape = {whole ? 1 : shape[static_cast<size_t>(dim)]};
  lengths.computed = true;
  const std::string g_name =
      lengths.attr.has_name() ? lengths.attr.name() : lengths.name;
  const bool first = FindParameter(g_name) == nullptr;
  PD_ASSIGN_OR_RETURN(const std::string g, Plain(lengths));
  if (first) PD_RETURN_IF_ERROR(MeasureLengths(v, axes, g, parts_.startup));
  OpChain chain(main());
  std::string direction;
  if (whole) {
    const std::string squares =
        chain.Reduce("reduce_sum", chain.Unary("square", v));
    direction =
        chain.Div(v, chain.Scale(chain.Unary("sqrt", squares), 1, 1e-12));
  } else {
    direction = chain.Div(v, Length(v, axes, 1e-12, &chain));
  }
  return chain.Give(chain.Op("elementwise_mul", {{"X", direction}, {"Y", g}},
                             {"Out"},
                             {{"axis", whole ? int32_t{-1} : int32_t{dim}}}));
}

// A statistic that starts as a random vector of length 1.
absl::StatusOr<std::string> LayerContext::UnitVector(const std::string& name,
                                                     int64_t extent,
                                                     double eps) {
  if (FindParameter(name) != nullptr) return name;  // shared
  VarDesc var;
  var.name = name;
  var.shape = {extent};
  var.stop_gradient = true;
  VarDesc drawn = var;
  drawn.name = absl::StrCat(name, "@DRAWN");
  Keep(std::move(var));
  parts_.startup->AddVar(drawn);
  PD_RETURN_IF_ERROR(AppendInitializer(NormalInitializer(1), drawn.name,
                                       drawn.shape, drawn.dtype,
                                       parts_.startup));
  OpChain chain(parts_.startup);
  const std::string length = Length(drawn.name, {0}, eps, &chain);
  Into("assign", chain.Div(drawn.name, length), name, &chain);
  return chain.Give(name);
}

absl::StatusOr<std::string> LayerContext::SpectralNorm(
    const ParameterRequest& request) {
  const job::WeightSpectralNorm& p = request.attr.spectral_norm();
  const Shape& shape = request.shape;
  const int dim = p.has_dim() ? p.dim() : (HasColumns(scope_.kind) ? 1 : 0);
  if (dim >= static_cast<int>(shape.size()))
    return InvalidArgument("'dim' of spectral_norm is %d; '%s' has %d axes",
                           dim, request.name, shape.size());
  PD_ASSIGN_OR_RETURN(const std::string weight,
                      Plain(PartOf(request, "_orig")));
  const int64_t rows = shape[static_cast<size_t>(dim)];
  const std::string name =
      request.attr.has_name() ? request.attr.name() : request.name;
  PD_ASSIGN_OR_RETURN(const std::string u_kept,
                      UnitVector(name + "_u", rows, p.eps()));
  PD_ASSIGN_OR_RETURN(
      const std::string v_kept,
      UnitVector(name + "_v", NumElements(shape) / rows, p.eps()));
  OpChain chain(main());
  const std::string matrix = AsMatrix(weight, shape, dim, &chain);
  std::string u = u_kept, v = v_kept;
  // Evaluation takes u and v as training has left them.
  if (!Evaluates()) {
    const auto next = [&](const std::string& of, bool transposed) {
      const std::string made = Product(matrix, of, transposed, &chain);
      const std::string unit =
          chain.Div(made, Length(made, {0}, p.eps(), &chain));
      if (chain.ok()) main()->MutableVar(unit)->stop_gradient = true;
      return unit;
    };
    for (int i = 0; i < p.n_power_iterations(); ++i) {
      v = next(u, true);
      u = next(v, false);
    }
    Into("assign", u, u_kept, &chain);
    Into("assign", v, v_kept, &chain);
  }
  // As sums, which ONNX has too.
  const std::string sigma = chain.Reduce(
      "reduce_sum", chain.Mul(u, Product(matrix, v, false, &chain)));
  return chain.Give(chain.Div(weight, sigma));
}

}  // namespace pd
