// SPDX-License-Identifier: Apache-2.0
// Operators that compute on the values of a sparse tensor alone, by those for
// dense tensors; the places stay. `sparse_abs` is `abs` of the values, and so
// on; 0 elsewhere is no value, and stays 0.
// Gradients are those of the dense operators, of the values.
//   sparse_divide_scalar: values / scalar
//   sparse_full_like: each value is `value`
//   sparse_cast: values and indices in other dtypes; -1: as they are
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

// The dense operator, and the attributes that both have.
struct Unary {
  const char* sparse;
  const char* dense;
  std::vector<AttrDef> attrs;
};

std::vector<Unary> Unaries() {
  std::vector<Unary> all;
  for (const auto& [sparse, dense] :
       {std::pair("sparse_abs", "abs"), std::pair("sparse_acos", "acos"),
        std::pair("sparse_acosh", "acosh"), std::pair("sparse_asin", "asin"),
        std::pair("sparse_asinh", "asinh"), std::pair("sparse_atan", "atan"),
        std::pair("sparse_atanh", "atanh"), std::pair("sparse_expm1", "expm1"),
        std::pair("sparse_isnan", "isnan_v2"),
        std::pair("sparse_log1p", "log1p"), std::pair("sparse_relu", "relu"),
        std::pair("sparse_relu6", "relu6"), std::pair("sparse_sin", "sin"),
        std::pair("sparse_sinh", "sinh"), std::pair("sparse_sqrt", "sqrt"),
        std::pair("sparse_square", "square"), std::pair("sparse_tan", "tan"),
        std::pair("sparse_tanh", "tanh")})
    all.push_back({sparse, dense, {}});
  all.push_back(
      {"sparse_leaky_relu", "leaky_relu", {{"alpha", AttrType::kFloat, {}}}});
  all.push_back({"sparse_pow", "pow", {{"factor", AttrType::kFloat, {}}}});
  all.push_back({"sparse_scale",
                 "scale",
                 {{"scale", AttrType::kFloat, {}},
                  {"bias", AttrType::kFloat, {}},
                  {"bias_after_scale", AttrType::kBoolean, {}}}});
  return all;
}

const Unary& UnaryOf(const std::string& type) {
  static const auto* all = new std::vector<Unary>(Unaries());
  for (const Unary& unary : *all)
    if (type == unary.sparse) return unary;
  PD_INVARIANT(false);
  return all->front();
}

absl::Status InferUnaryValues(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLikeX(context));
  if (context->op().type != "sparse_isnan") return absl::OkStatus();
  const TensorMeta& x = context->Input("x");
  SetSparse(context, "out", x.kind, x.shape, DType::kBool);
  return absl::OkStatus();
}

Eager::Attrs AttrsOf(const BindContext& context, const Unary& unary) {
  Eager::Attrs attrs;
  for (const AttrDef& attr : unary.attrs)
    attrs[attr.name] = *context.op().FindAttr(attr.name);
  return attrs;
}

absl::StatusOr<Step> BindUnaryValues(BindContext* context) {
  Tensor* x = context->Input("x");
  const Unary& unary = UnaryOf(context->op().type);
  const Eager::Attrs attrs = AttrsOf(*context, unary);
  return Giving(
      context->Output("out"),
      [=, dense = unary.dense](const Eager& eager) -> absl::StatusOr<Tensor> {
        PD_ASSIGN_OR_RETURN(
            Tensor values, eager.Run(dense, {{"X", &SparseValues(*x)}}, attrs));
        return WithValues(*x, std::move(values));
      });
}

// The gradient of the dense operator, of values alone.
absl::StatusOr<Step> BindUnaryGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Input("out");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  const std::string& type = context->op().type;
  const Unary& unary = UnaryOf(type.substr(0, type.size() - 5));  // "_grad"
  const Eager::Attrs attrs = AttrsOf(*context, unary);
  return Giving(
      x_grad,
      [=, dense = unary.dense](const Eager& eager) -> absl::StatusOr<Tensor> {
        PD_ASSIGN_OR_RETURN(
            std::vector<Tensor> grads,
            eager.Gradients(dense, {{"X", &SparseValues(*x)}}, attrs,
                            {{"Out", &SparseValues(*out)}}, "Out",
                            &SparseValues(*out_grad), {"X"}));
        return WithValues(*x, std::move(grads[0]));
      });
}

// x, or out@GRAD, divided by the scalar.
absl::StatusOr<Step> Divided(BindContext* context, const char* from,
                             const char* to) {
  Tensor* x = context->Input(from);
  const float scalar = context->Attr<float>("scalar");
  return Giving(
      context->Output(to), [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        Tensor& of = SparseValues(*x);
        PD_ASSIGN_OR_RETURN(
            Tensor divisor,
            eager.Run("fill_any_like", {{"X", &of}}, {{"value", scalar}}));
        PD_ASSIGN_OR_RETURN(
            Tensor values,
            eager.Run("elementwise_div", {{"X", &of}, {"Y", &divisor}}));
        return WithValues(*x, std::move(values));
      });
}

absl::StatusOr<Step> BindDivideScalar(BindContext* context) {
  return Divided(context, "x", "out");
}
absl::StatusOr<Step> BindDivideScalarGrad(BindContext* context) {
  return Divided(context, "out@GRAD", "x@GRAD");
}

// The dtype that an attribute asks for; -1: `otherwise`.
absl::StatusOr<DType> AskedDType(int32_t code, const char* attr,
                                 DType otherwise) {
  if (code == -1) return otherwise;
  const auto dtype = DTypeFromCode(code);
  if (dtype.has_value()) return *dtype;
  return InvalidArgument("attr '%s' is %d, which is no dtype", attr, code);
}

absl::Status InferFullLike(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  PD_ASSIGN_OR_RETURN(
      const DType dtype,
      AskedDType(context->Attr<int32_t>("dtype"), "dtype", x.dtype));
  SetSparse(context, "out", x.kind, x.shape, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindFullLike(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* given = context->Input("ValueTensor");
  const float value = context->Attr<float>("value");
  const int32_t dtype = context->Attr<int32_t>("dtype");
  return Giving(
      context->Output("out"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        Tensor& of = SparseValues(*x);
        if (given == nullptr) {
          PD_ASSIGN_OR_RETURN(Tensor values,
                              eager.Run("fill_any_like", {{"X", &of}},
                                        {{"value", value}, {"dtype", dtype}}));
          return WithValues(*x, std::move(values));
        }
        PD_ASSIGN_OR_RETURN(
            Tensor zeros,
            eager.Run("fill_any_like", {{"X", &of}}, {{"dtype", dtype}}));
        PD_ASSIGN_OR_RETURN(
            Tensor cast,
            eager.Run("cast", {{"X", given}},
                      {{"in_dtype", static_cast<int32_t>(given->dtype())},
                       {"out_dtype", static_cast<int32_t>(zeros.dtype())}}));
        PD_ASSIGN_OR_RETURN(
            Tensor values,
            eager.Run("elementwise_add", {{"X", &zeros}, {"Y", &cast}}));
        return WithValues(*x, std::move(values));
      });
}

absl::Status InferCast(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const DType dtype,
                      AskedDType(context->Attr<int32_t>("value_dtype"),
                                 "value_dtype", x.dtype));
  PD_ASSIGN_OR_RETURN(const DType indices,
                      AskedDType(context->Attr<int32_t>("index_dtype"),
                                 "index_dtype", DType::kInt64));
  if (indices != DType::kInt64 && indices != DType::kInt32)
    return InvalidArgument("index_dtype is %s; expected int32 or int64",
                           Name(indices));
  SetSparse(context, "out", x.kind, x.shape, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCast(BindContext* context) {
  Tensor* x = context->Input("x");
  const int32_t value_dtype = context->Attr<int32_t>("value_dtype");
  const int32_t index_dtype = context->Attr<int32_t>("index_dtype");
  return Giving(
      context->Output("out"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        Tensor made = *x;
        for (Tensor& part : made.elements()) {
          const bool values = &part == &made.elements().back();
          const int32_t dtype = values ? value_dtype : index_dtype;
          if (dtype == -1) continue;
          if (values) {
            PD_ASSIGN_OR_RETURN(
                part,
                eager.Run("cast", {{"X", &part}},
                          {{"in_dtype", static_cast<int32_t>(part.dtype())},
                           {"out_dtype", dtype}}));
          } else {
            PD_ASSIGN_OR_RETURN(
                part, IntegerTensor(*DTypeFromCode(dtype), part.shape(),
                                    IntsOf(part)));
          }
        }
        made.Reset(SparseValues(made).dtype(), x->shape());
        return made;
      });
}

absl::StatusOr<Step> BindCastGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(
      context->Output("x@GRAD"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        Tensor& of = SparseValues(*out_grad);
        PD_ASSIGN_OR_RETURN(
            Tensor values,
            eager.Run("cast", {{"X", &of}},
                      {{"in_dtype", static_cast<int32_t>(of.dtype())},
                       {"out_dtype", static_cast<int32_t>(x->dtype())}}));
        return WithValues(*x, std::move(values));
      });
}

}  // namespace

absl::Status RegisterSparseUnary(OpRegistry* registry) {
  for (const Unary& unary : Unaries()) {
    OpDef op(unary.sparse);
    op.Input("x").Output("out");
    for (const AttrDef& attr : unary.attrs)
      op.RequiredAttr(attr.name, attr.type);
    const bool differs = std::string(unary.sparse) != "sparse_isnan";
    PD_RETURN_IF_ERROR(differs ? AddSparse(registry, std::move(op),
                                           InferUnaryValues, BindUnaryValues,
                                           {"x"}, {"out"}, {"x"}, BindUnaryGrad)
                               : AddSparse(registry, std::move(op),
                                           InferUnaryValues, BindUnaryValues));
  }
  OpDef divide("sparse_divide_scalar");
  divide.Input("x").Output("out").RequiredAttr("scalar", AttrType::kFloat);
  PD_RETURN_IF_ERROR(AddSparse(registry, std::move(divide), InferLikeX,
                               BindDivideScalar, {"x"}, {}, {"x"},
                               BindDivideScalarGrad));
  OpDef full("sparse_full_like");
  full.Input("x").OptionalInput("ValueTensor").Output("out");
  full.RequiredAttr("value", AttrType::kFloat).Attr("dtype", int32_t{-1});
  PD_RETURN_IF_ERROR(
      AddSparse(registry, std::move(full), InferFullLike, BindFullLike));
  OpDef cast("sparse_cast");
  cast.Input("x").Output("out");
  cast.Attr("index_dtype", int32_t{-1}).Attr("value_dtype", int32_t{-1});
  return AddSparse(registry, std::move(cast), InferCast, BindCast, {"x"}, {},
                   {"x"}, BindCastGrad);
}

}  // namespace pd
