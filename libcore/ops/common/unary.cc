// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/unary.h"

#include "libcore/ops/common/upcast.h"

namespace pd {
namespace unary_internal {
namespace {

constexpr int64_t kGrain = 4096;  // elements per thread at least

}  // namespace

absl::StatusOr<Step> BindForward(BindContext* context, MakeUnaryRowFn make) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() == out->dtype()) context->MayShare(x, out);
  Upcaster upcaster(context);
  x = upcaster.In(x);
  out = upcaster.Out(out);
  PD_ASSIGN_OR_RETURN(const RowFunction row, make(x->dtype(), context->op()));
  return upcaster.Wrap(ElementStep(row, {x}, out, kGrain));
}

absl::StatusOr<Step> BindGradient(BindContext* context, GradReads reads,
                                  MakeUnaryRowFn make) {
  Upcaster upcaster(context);
  Tensor* dout = upcaster.In(context->Input("Out@GRAD"));
  if (context->Output("X@GRAD") == nullptr)
    return InvalidArgument("'X@GRAD' is missing");
  context->MayShare(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  Tensor* dx = upcaster.Out(context->Output("X@GRAD"));
  Tensor* from = dout;
  if (reads != GradReads::kNothing) {
    const char* slot = reads == GradReads::kX ? "X" : "Out";
    PD_RETURN_IF_ERROR(ExpectElements(
        *context, slot, context->Input("Out@GRAD")->dtype(), dout->size()));
    from = upcaster.In(context->Input(slot));
    Tensor* other = context->Input(reads == GradReads::kX ? "Out" : "X");
    if (other != nullptr) context->NoBuffer(other);
  }
  PD_ASSIGN_OR_RETURN(const RowFunction row,
                      make(dout->dtype(), context->op()));
  return upcaster.Wrap(ElementStep(row, {from, dout}, dx, kGrain));
}

absl::Status InferPromoting(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  if (out.dtype == DType::kInt32 || out.dtype == DType::kInt64)
    out.dtype = DType::kFloat32;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  TensorMeta grad = context->Input("Out@GRAD");
  grad.value = nullptr;
  // PaddlePaddle's gradient of c_split joins parts along another axis than the
  // split one: what follows takes its elements in the shape of the operand.
  for (const char* slot : {"X", "Out"}) {
    if (!context->HasInput(slot)) continue;
    const Shape& shape = context->Input(slot).shape;
    if (!IsDynamic(shape) && !IsDynamic(grad.shape) &&
        NumElements(shape) == NumElements(grad.shape))
      grad.shape = shape;
  }
  context->SetOutput("X@GRAD", std::move(grad));
  return absl::OkStatus();
}

std::pair<OpDef, OpDef> MakeUnary(const std::string& type,
                                  const UnaryParts& parts,
                                  const UnaryAttrs& attrs, bool both_slots) {
  OpDef op(type);
  op.Input("X").Output("Out").Infer(parts.infer);
  op.Reference(parts.bind).With(Trait::kShapeArithmetic);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (parts.reads == GradReads::kX || both_slots) spec.inputs = {"X"};
  if (parts.reads == GradReads::kOut || both_slots) spec.outputs = {"Out"};
  op.Grad(std::move(spec));

  OpDef grad(type + "_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  // The slot that is not read may be there: versions differ in it.
  parts.reads == GradReads::kX ? grad.Input("X") : grad.OptionalInput("X");
  parts.reads == GradReads::kOut ? grad.Input("Out")
                                 : grad.OptionalInput("Out");
  grad.Infer(InferGrad);
  grad.Reference(parts.bind_grad);
  for (const auto& [name, value] : attrs) {
    op.Attr(name, value);
    grad.Attr(name, value);
  }
  return {std::move(op), std::move(grad)};
}

}  // namespace unary_internal
}  // namespace pd
