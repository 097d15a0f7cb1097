// SPDX-License-Identifier: Apache-2.0
// The primitives that PaddlePaddle's program transformations write
// (paddle.incubate.autograd), element by element: each is an op by another name
// whose operands have one shape and dtype. select_p is where, matmul_p a
// product of matrices or of lists of them. PaddlePaddle differentiates programs
// of primitives by rules of its own, so these ops have no gradient ops.
#include <algorithm>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

struct ElementPrimitive {
  const char *type, *part;
};

constexpr ElementPrimitive kUnaryPrimitives[] = {
    {"abs_p", "abs"}, {"cos_p", "cos"},   {"erf_p", "erf"},
    {"exp_p", "exp"}, {"log_p", "log"},   {"rsqrt_p", "rsqrt"},
    {"sin_p", "sin"}, {"sqrt_p", "sqrt"}, {"tanh_p", "tanh"},
};
constexpr ElementPrimitive kBinaryPrimitives[] = {
    {"add_p", "elementwise_add"},
    {"div_p", "elementwise_div"},
    {"eq_p", "equal"},
    {"ge_p", "greater_equal"},
    {"gt_p", "greater_than"},
    {"max_p", "elementwise_max"},
    {"mul_p", "elementwise_mul"},
    {"ne_p", "not_equal"},
    {"pow_p", "elementwise_pow"},
    {"sub_p", "elementwise_sub"},
};

template <size_t n>
const char* PartOf(const ElementPrimitive (&table)[n],
                   const std::string& type) {
  for (const ElementPrimitive& row : table)
    if (type == row.type) return row.part;
  return "";
}

bool MayBeEqual(const Shape& x, const Shape& y) {
  return std::equal(
      x.begin(), x.end(), y.begin(), y.end(),
      [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

absl::Status ExpectAlike(const Composition& parts, const char* x,
                         const char* y) {
  const TensorMeta &a = parts.Meta(x), &b = parts.Meta(y);
  if (MayBeEqual(a.shape, b.shape)) return absl::OkStatus();
  return InvalidArgument("'%s' has shape %s, '%s' has %s; expected one shape",
                         x, ToString(a.shape), y, ToString(b.shape));
}

absl::Status ComposeUnaryPrimitive(Composition* parts) {
  parts->Add(PartOf(kUnaryPrimitives, parts->op().type),
             {{"X", {parts->In("X")}}}, {{"Out", {parts->Out("Y")}}});
  return absl::OkStatus();
}

absl::Status ComposeBinaryPrimitive(Composition* parts) {
  PD_RETURN_IF_ERROR(ExpectAlike(*parts, "X", "Y"));
  parts->Add(PartOf(kBinaryPrimitives, parts->op().type),
             {{"X", {parts->In("X")}}, {"Y", {parts->In("Y")}}},
             {{"Out", {parts->Out("Z")}}});
  return absl::OkStatus();
}

absl::Status ComposeMatmulPrimitive(Composition* parts) {
  const Shape &x = parts->Meta("X").shape, &y = parts->Meta("Y").shape;
  const size_t rank = x.size();
  if (rank != y.size() || (rank != 2 && rank != 3) ||
      (rank == 3 && !MayBeEqual({x[0]}, {y[0]})))
    return InvalidArgument(
        "'X' has shape %s, 'Y' has %s; expected two matrices, or as many in "
        "each",
        ToString(x), ToString(y));
  parts->Add("matmul_v2", {{"X", {parts->In("X")}}, {"Y", {parts->In("Y")}}},
             {{"Out", {parts->Out("Z")}}});
  return absl::OkStatus();
}

absl::Status ComposeSelectPrimitive(Composition* parts) {
  PD_RETURN_IF_ERROR(ExpectAlike(*parts, "X", "Y"));
  PD_RETURN_IF_ERROR(ExpectAlike(*parts, "Condition", "X"));
  parts->Add("where",
             {{"Condition", {parts->In("Condition")}},
              {"X", {parts->In("X")}},
              {"Y", {parts->In("Y")}}},
             {{"Out", {parts->Out("Z")}}});
  return absl::OkStatus();
}

absl::Status ComposeCastPrimitive(Composition* parts) {
  parts->Add("cast", {{"X", {parts->In("X")}}}, {{"Out", {parts->Out("Y")}}},
             {{"in_dtype", static_cast<int32_t>(parts->Meta("X").dtype)},
              {"out_dtype", parts->Attr<int32_t>("dtype")}});
  return absl::OkStatus();
}

OpDef TwoOperands(const char* type) {
  OpDef op(type);
  op.Input("X").Input("Y").Output("Z");
  return op;
}

}  // namespace

absl::Status RegisterElementPrimitives(OpRegistry* registry) {
  for (const ElementPrimitive& row : kUnaryPrimitives) {
    OpDef op(row.type);
    op.Input("X").Output("Y");
    PD_RETURN_IF_ERROR(
        AddComposed<ComposeUnaryPrimitive>(registry, std::move(op)));
  }
  for (const ElementPrimitive& row : kBinaryPrimitives)
    PD_RETURN_IF_ERROR(
        AddComposed<ComposeBinaryPrimitive>(registry, TwoOperands(row.type)));
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeMatmulPrimitive>(registry, TwoOperands("matmul_p")));

  OpDef select("select_p");
  select.Input("Condition").Input("X").Input("Y").Output("Z");
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeSelectPrimitive>(registry, std::move(select)));

  OpDef cast("cast_p");
  cast.Input("X").Output("Y").RequiredAttr("dtype", AttrType::kInt);
  cast.With(Trait::kConvertsDtype);
  return AddComposed<ComposeCastPrimitive>(registry, std::move(cast));
}

}  // namespace pd
