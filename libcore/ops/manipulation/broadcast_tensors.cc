// SPDX-License-Identifier: Apache-2.0
// Several tensors brought to one shape:
//   broadcast_tensors: as numpy broadcasts them
//   meshgrid: of vectors, X[i] repeated along all axes but the i-th
// X[i]@GRAD = Out[i]@GRAD summed over the repetitions. PaddlePaddle 2.6 calls
// the gradients that meshgrid_grad reads outputs@GRAD.
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/manipulation/repeat.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferBroadcast(InferContext* context) {
  Shape shape;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    PD_ASSIGN_OR_RETURN(
        const Broadcast both,
        BroadcastShapes(shape, context->Input("X", i).shape, -1));
    shape = both.out;
  }
  if (context->OutputCount("Out") != context->InputCount("X"))
    return InvalidArgument("there are %d inputs and %d outputs",
                           context->InputCount("X"),
                           context->OutputCount("Out"));
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    context->SetOutput("Out", shape, context->Input("X", i).dtype, i);
  return absl::OkStatus();
}

absl::Status InferMeshgrid(InferContext* context) {
  Shape shape;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    const Shape& x = context->Input("X", i).shape;
    if (x.size() > 1)
      return InvalidArgument("X[%d] has shape %s; expected a vector", i,
                             ToString(x));
    shape.push_back(x.empty() ? 1 : x[0]);
  }
  for (size_t i = 0; i < context->OutputCount("Out"); ++i)
    context->SetOutput("Out", shape, context->Input("X").dtype, i);
  return absl::OkStatus();
}

// How X[i] lies in the common shape.
Shape ShapeIn(const OpDesc& op, const Tensor& x, size_t i, size_t count) {
  if (op.type.rfind("meshgrid", 0) != 0) return x.shape();
  Shape shape(count, 1);
  shape[i] = x.size();
  return shape;
}

absl::StatusOr<Step> BindBroadcast(BindContext* context) {
  const size_t count = context->InputCount("X");
  std::vector<Step> steps;
  for (size_t i = 0; i < count && i < context->OutputCount("Out"); ++i) {
    Tensor* out = context->Output("Out", i);
    if (out == nullptr) continue;
    Tensor* x = context->Input("X", i);
    PD_ASSIGN_OR_RETURN(
        Step step,
        RepeatStep(context, x, ShapeIn(context->op(), *x, i, count), out));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindBroadcastGrad(BindContext* context) {
  const size_t count = context->InputCount("X");
  std::vector<Step> steps;
  for (size_t i = 0; i < count; ++i) {
    Tensor* dx = context->Output("X@GRAD", i);
    context->NoBuffer(context->Input("X", i));
    if (dx == nullptr) continue;
    Tensor* dout = context->Input("Out@GRAD", i);
    if (dout == nullptr) dout = context->Input("outputs@GRAD", i);
    if (dout == nullptr)
      return InvalidArgument("the gradient of output %d is missing", i);
    PD_ASSIGN_OR_RETURN(Step step,
                        SumRepeatsStep(context, dout, dx,
                                       ShapeIn(context->op(), *dx, i, count)));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::Status AddBroadcastTensorsOp(OpRegistry* registry,
                                   const std::string& type, InferFn infer) {
  OpDef op(type);
  op.Inputs("X").Outputs("Out").Infer(infer).Reference(BindBroadcast);
  op.Grad(GradSpec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Inputs("X").OptionalInputs("Out@GRAD").Outputs("X@GRAD");
  if (type == "meshgrid") grad.OptionalInputs("outputs@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindBroadcastGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterBroadcastTensors(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddBroadcastTensorsOp(registry, "broadcast_tensors", InferBroadcast));
  return AddBroadcastTensorsOp(registry, "meshgrid", InferMeshgrid);
}

}  // namespace pd
