// SPDX-License-Identifier: Apache-2.0
// Computing layers: functions of each element, of two tensors, of axes; matrix
// products. The ops are those that paddle's functions make in a static program.
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/output_names.h"

namespace pd {
namespace {

// Kinds whose op is of one input "X" and has another name than the layer, or
// the same.
absl::StatusOr<std::string> BuildFunction(LayerContext* c) {
  if (c->kind() == "neg")
    return c->Unary(
        "scale", c->input(),
        {{"scale", -1.0f}, {"bias", 0.0f}, {"bias_after_scale", true}});
  return c->Unary(c->kind().c_str(), c->input());
}

const char* OpOf(int kind) {
  switch (kind) {
    case job::Layer::kSubtract:
      return "elementwise_sub";
    case job::Layer::kDivide:
      return "elementwise_div";
    case job::Layer::kMaximum:
      return "elementwise_max";
    case job::Layer::kMinimum:
      return "elementwise_min";
    case job::Layer::kRemainder:
      return "elementwise_mod";
    case job::Layer::kFloorDivide:
      return "elementwise_floordiv";
    default:
      return nullptr;
  }
}

absl::StatusOr<std::string> Pair(const char* type, LayerContext* c,
                                 std::map<std::string, Attribute> attrs = {}) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {c->input(0)});
  op.SetInput("Y", {c->input(1)});
  op.attrs = std::move(attrs);
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildElementwise(LayerContext* c) {
  if (c->layer().kind_case() == job::Layer::kBmm) return Pair("bmm", c);
  if (c->layer().kind_case() == job::Layer::kDot) return Pair("dot", c);
  const char* type = OpOf(c->layer().kind_case());
  // Comparisons are called as their ops.
  return c->Binary(type == nullptr ? c->kind().c_str() : type, c->input(0),
                   c->input(1));
}

absl::StatusOr<std::string> BuildLogical(LayerContext* c) {
  return Pair(c->kind().c_str(), c);
}

absl::StatusOr<std::string> BuildMatMul(LayerContext* c) {
  const job::MatMul& p = c->layer().matmul();
  return Pair("matmul_v2", c,
              {{"trans_x", p.transpose_x()}, {"trans_y", p.transpose_y()}});
}

absl::StatusOr<std::string> BuildPow(LayerContext* c) {
  const job::Pow& p = c->layer().pow();
  if (p.has_factor() == (c->input_count() == 2))
    return InvalidArgument(
        "'pow' needs an exponent: 'factor', or a second input");
  if (!p.has_factor())
    return c->Binary("elementwise_pow", c->input(0), c->input(1));
  return c->Unary("pow", c->input(),
                  {{"factor", static_cast<float>(p.factor())}});
}

absl::StatusOr<std::string> BuildScale(LayerContext* c) {
  const job::Scale& p = c->layer().scale();
  return c->Unary("scale", c->input(),
                  {{"scale", static_cast<float>(p.scale())},
                   {"bias", static_cast<float>(p.bias())},
                   {"bias_after_scale", p.bias_after_scale()}});
}

absl::StatusOr<std::string> BuildClip(LayerContext* c) {
  const job::Clip& p = c->layer().clip();
  const float far = std::numeric_limits<float>::max();
  const float min = p.has_min() ? static_cast<float>(p.min()) : -far;
  const float max = p.has_max() ? static_cast<float>(p.max()) : far;
  if (min > max)
    return InvalidArgument("'min' is %g; it must be at most 'max', %g", min,
                           max);
  return c->Unary("clip", c->input(), {{"min", min}, {"max", max}});
}

const job::ReduceAxes& ReductionOf(const job::Layer& layer) {
  switch (layer.kind_case()) {
    case job::Layer::kSum:
      return layer.sum();
    case job::Layer::kMax:
      return layer.max();
    case job::Layer::kMin:
      return layer.min();
    case job::Layer::kProd:
      return layer.prod();
    default:
      return layer.logsumexp();
  }
}

absl::StatusOr<std::string> BuildReduction(LayerContext* c) {
  const job::ReduceAxes& p = ReductionOf(c->layer());
  std::vector<int32_t> axes(p.axis().begin(), p.axis().end());
  for (const int32_t axis : axes)
    PD_RETURN_IF_ERROR(NormalizeAxis(axis, c->shape().size(), "axis").status());
  const bool all = axes.empty() || axes.size() == c->shape().size();
  if (c->layer().has_logsumexp()) {
    if (axes.empty()) axes = {0};
    return c->Unary(
        "logsumexp", c->input(),
        {{"axis", axes}, {"keepdim", p.keepdim()}, {"reduce_all", all}});
  }
  return c->Unary(
      absl::StrCat("reduce_", c->kind()).c_str(), c->input(),
      {{"dim", axes}, {"keep_dim", p.keepdim()}, {"reduce_all", all}});
}

std::map<std::string, Attribute> NormAttrs(double degree, int axis,
                                           bool keepdim) {
  return {{"porder", static_cast<float>(degree)},
          {"axis", int32_t{axis}},
          {"keepdim", keepdim},
          {"epsilon", 1e-12f},
          {"asvector", false}};
}

absl::StatusOr<std::string> BuildNorm(LayerContext* c) {
  const job::Norm& p = c->layer().norm();
  PD_RETURN_IF_ERROR(
      NormalizeAxis(p.axis(), c->shape().size(), "axis").status());
  return c->Unary("p_norm", c->input(),
                  NormAttrs(p.p(), p.axis(), p.keepdim()));
}

// F.normalize: x / max(norm, epsilon).
absl::StatusOr<std::string> BuildNormalize(LayerContext* c) {
  const job::UnitVectors& p = c->layer().normalize();
  const int axis = c->shape().size() == 1 ? 0 : p.axis();
  PD_RETURN_IF_ERROR(NormalizeAxis(axis, c->shape().size(), "axis").status());
  PD_ASSIGN_OR_RETURN(
      const std::string norm,
      c->Unary("p_norm", c->input(), NormAttrs(p.p(), axis, true)));
  OpDesc least;
  least.type = "fill_constant";
  least.attrs = {{"shape", std::vector<int64_t>{1}},
                 {"dtype", static_cast<int32_t>(c->dtype())},
                 {"value", static_cast<float>(p.epsilon())},
                 {"str_value", absl::StrCat(p.epsilon())}};
  PD_ASSIGN_OR_RETURN(const std::string epsilon,
                      c->Append(std::move(least), {"Out"}));
  PD_ASSIGN_OR_RETURN(const std::string divisor,
                      c->Binary("elementwise_max", norm, epsilon));
  return c->Binary("elementwise_div", c->input(), divisor);
}

absl::StatusOr<std::string> BuildArg(LayerContext* c) {
  const bool max = c->layer().has_argmax();
  const job::ArgMax& p = max ? c->layer().argmax() : c->layer().argmin();
  if (p.has_axis())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(p.axis(), c->shape().size(), "axis").status());
  return c->Unary(max ? "arg_max" : "arg_min", c->input(),
                  {{"axis", int64_t{p.axis()}},
                   {"keepdims", p.keepdim()},
                   {"flatten", !p.has_axis()},
                   {"dtype", static_cast<int32_t>(DType::kInt64)}});
}

// Values, then "LAYER:indices".
absl::StatusOr<std::string> Ranked(const char* type,
                                   std::map<std::string, Attribute> attrs,
                                   LayerContext* c) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {c->input()});
  op.attrs = std::move(attrs);
  PD_ASSIGN_OR_RETURN(const std::string values,
                      c->Append(std::move(op), {"Out", "Indices"}));
  c->AddOutput("indices", TemporaryBeside(values, 1));
  return values;
}

absl::StatusOr<std::string> BuildTopK(LayerContext* c) {
  const job::TopK& p = c->layer().topk();
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(p.axis(), c->shape().size(), "axis"));
  const int64_t extent = c->shape()[static_cast<size_t>(axis)];
  if (extent >= 0 && p.k() > extent)
    return c->Misfit(absl::StrCat("at least ", p.k(), " values on axis ",
                                  p.axis(), " ('k')"));
  return Ranked("top_k_v2",
                {{"k", int32_t{p.k()}},
                 {"axis", int32_t{p.axis()}},
                 {"largest", p.largest()},
                 {"sorted", p.sorted()}},
                c);
}

absl::StatusOr<std::string> BuildSort(LayerContext* c) {
  const job::Sort& p = c->layer().sort();
  return Ranked("argsort",
                {{"axis", int32_t{p.axis()}}, {"descending", p.descending()}},
                c);
}

absl::StatusOr<std::string> BuildCumsum(LayerContext* c) {
  const job::Cumulate& p = c->layer().cumsum();
  return c->Unary("cumsum", c->input(),
                  {{"axis", p.has_axis() ? int32_t{p.axis()} : int32_t{-1}},
                   {"flatten", !p.has_axis()},
                   {"exclusive", false},
                   {"reverse", false}});
}

absl::StatusOr<std::string> BuildCumprod(LayerContext* c) {
  return c->Unary("cumprod", c->input(),
                  {{"dim", int32_t{c->layer().cumprod().dim()}}});
}

absl::StatusOr<std::string> BuildLabelSmooth(LayerContext* c) {
  return c->Unary(
      "label_smooth", c->input(),
      {{"epsilon", static_cast<float>(c->layer().label_smooth().epsilon())}});
}

}  // namespace

void AddFunctionLayers(LayerTable* table) {
  using L = job::Layer;
  for (const int kind :
       {L::kSqrt,       L::kRsqrt, L::kSquare, L::kExp,   L::kExpm1,
        L::kLog,        L::kLog2,  L::kLog10,  L::kLog1P, L::kAbs,
        L::kNeg,        L::kSign,  L::kSin,    L::kCos,   L::kTan,
        L::kReciprocal, L::kAsin,  L::kAcos,   L::kAtan,  L::kSinh,
        L::kCosh,       L::kErf,   L::kFloor,  L::kCeil,  L::kRound,
        L::kLogicalNot})
    (*table)[kind] = {BuildFunction};
  for (const int kind :
       {L::kBmm, L::kSubtract, L::kDivide, L::kMaximum, L::kMinimum,
        L::kRemainder, L::kFloorDivide, L::kDot, L::kEqual, L::kNotEqual,
        L::kLessThan, L::kLessEqual, L::kGreaterThan, L::kGreaterEqual})
    (*table)[kind] = {BuildElementwise, 2, 2};
  for (const int kind : {L::kLogicalAnd, L::kLogicalOr, L::kLogicalXor})
    (*table)[kind] = {BuildLogical, 2, 2};
  for (const int kind : {L::kSum, L::kMax, L::kMin, L::kProd, L::kLogsumexp})
    (*table)[kind] = {BuildReduction};
  (*table)[L::kMatmul] = {BuildMatMul, 2, 2};
  (*table)[L::kPow] = {BuildPow, 1, 2};
  (*table)[L::kScale] = {BuildScale};
  (*table)[L::kClip] = {BuildClip};
  (*table)[L::kNorm] = {BuildNorm};
  (*table)[L::kNormalize] = {BuildNormalize};
  (*table)[L::kArgmax] = {BuildArg};
  (*table)[L::kArgmin] = {BuildArg};
  (*table)[L::kTopk] = {BuildTopK};
  (*table)[L::kSort] = {BuildSort};
  (*table)[L::kCumsum] = {BuildCumsum};
  (*table)[L::kCumprod] = {BuildCumprod};
  (*table)[L::kLabelSmooth] = {BuildLabelSmooth};
}

}  // namespace pd
