// SPDX-License-Identifier: Apache-2.0
// assign: Out = X; X@GRAD = Out@GRAD by an assign op.
// assign_value: Out has `shape`, `dtype` and the elements of that dtype's
// attribute (bool_values, fp32_values, fp64_values, int32_values,
// int64_values).
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindAssign(BindContext* context) {
  return AliasOrCopy(context, context->Input("X"), context->Output("Out"));
}

absl::StatusOr<std::vector<OpDesc>> AssignGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {GradName(request.op.Out("Out"))});
  op.SetOutput("Out", {GradName(request.op.In("X"))});
  ops.push_back(std::move(op));
  return ops;
}

absl::Status InferAssignValue(InferContext* context) {
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  Shape shape = IntsAttr(context->op(), "shape");
  for (int64_t extent : shape)
    if (extent < 0)
      return InvalidArgument("attr 'shape' is %s", ToString(shape));
  context->SetOutput("Out", std::move(shape), *dtype);
  return absl::OkStatus();
}

template <typename T, typename Stored>
absl::StatusOr<Step> ValuesStep(BindContext* context, const char* attr) {
  Tensor* out = context->Output("Out");
  const auto& stored = context->Attr<std::vector<Stored>>(attr);
  if (static_cast<int64_t>(stored.size()) != out->size())
    return InvalidArgument("attr '%s' has %d values; attr 'shape' is %s", attr,
                           stored.size(), ToString(out->shape()));
  std::vector<Stored> values = stored;
  return Step([out, values](const RunContext&) {
    T* result = out->data<T>();
    for (size_t i = 0; i < values.size(); ++i)
      result[i] = static_cast<T>(values[i]);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindAssignValue(BindContext* context) {
  switch (context->Output("Out")->dtype()) {
    case DType::kBool:
      return ValuesStep<bool, int32_t>(context, "bool_values");
    case DType::kFloat32:
      return ValuesStep<float, float>(context, "fp32_values");
    case DType::kFloat64:
      return ValuesStep<double, double>(context, "fp64_values");
    case DType::kInt32:
      return ValuesStep<int32_t, int32_t>(context, "int32_values");
    case DType::kInt64:
      return ValuesStep<int64_t, int64_t>(context, "int64_values");
    default:
      return Unimplemented("no kernel for dtype %s",
                           Name(context->Output("Out")->dtype()));
  }
}

}  // namespace

absl::Status RegisterAssign(OpRegistry* registry) {
  OpDef assign("assign");
  assign.Input("X").Output("Out").Infer(InferUnary).Reference(BindAssign);
  assign.Grad(GradMaker(AssignGrad)).With(Trait::kShapeArithmetic);
  PD_RETURN_IF_ERROR(registry->Add(std::move(assign)));

  OpDef value("assign_value");
  value.Output("Out").RequiredAttr("shape", AttrType::kInts);
  value.RequiredAttr("dtype", AttrType::kInt);
  value.Attr("bool_values", std::vector<int32_t>());
  value.Attr("fp32_values", std::vector<float>());
  value.Attr("fp64_values", std::vector<double>());
  value.Attr("int32_values", std::vector<int32_t>());
  value.Attr("int64_values", std::vector<int64_t>());
  value.Infer(InferAssignValue).NoGrad().Reference(BindAssignValue);
  value.With(Trait::kShapeArithmetic);
  return registry->Add(std::move(value));
}

}  // namespace pd
