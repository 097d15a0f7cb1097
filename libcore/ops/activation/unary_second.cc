// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/activation/unary_second.h"

#include <utility>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/common/upcast.h"

namespace pd {
namespace unary_internal {

absl::StatusOr<Step> BindSecondRows(BindContext* context,
                                    const SecondSlots& slots,
                                    MakeUnaryRowFn make_dv,
                                    MakeUnaryRowFn make_ddout) {
  const bool bends = make_dv != nullptr;
  const std::string with_slot = bends ? slots.with : "grad_x@GRAD";
  const Tensor* like = context->Input("grad_x@GRAD");
  for (const std::string& slot : {slots.v, with_slot})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, like->dtype(), like->size()));
  Upcaster upcaster(context);
  Tensor* v = upcaster.In(context->Input(slots.v));
  Tensor* ddx = upcaster.In(context->Input("grad_x@GRAD"));
  Tensor* with = upcaster.In(context->Input(with_slot));
  Tensor* ddout = upcaster.Out(context->Output(GradName(slots.dout)));
  Tensor* dv =
      bends ? upcaster.Out(context->Output(GradName(slots.v))) : nullptr;
  std::vector<Step> steps;
  if (dv != nullptr) {
    PD_ASSIGN_OR_RETURN(const RowFunction row,
                        make_dv(ddx->dtype(), context->op()));
    steps.push_back(ElementStep(row, {v, ddx, with}, dv));
  }
  if (ddout != nullptr) {
    PD_ASSIGN_OR_RETURN(const RowFunction row,
                        make_ddout(ddx->dtype(), context->op()));
    steps.push_back(ElementStep(row, {v, ddx}, ddout));
  }
  return upcaster.Wrap(InOrder(std::move(steps)));
}

OpDef MakeSecond(const std::string& type, const SecondSlots& slots,
                 const UnaryAttrs& attrs) {
  OpDef second(type);
  second.Input(slots.v).Input("grad_x@GRAD");
  if (!slots.with.empty()) second.Input(slots.with);
  if (!slots.with.empty()) second.OptionalOutput(GradName(slots.v));
  second.OptionalOutput(GradName(slots.dout));
  for (const auto& [name, value] : attrs) second.Attr(name, value);
  return second;
}

GradMaker SecondMaker(std::string type, SecondSlots slots) {
  return
      [type, slots](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& grad = request.op;
        const std::string v = grad.In(slots.v), dout = grad.In("Out@GRAD");
        const bool want_v = !slots.with.empty() && request.needs_grad(v);
        const bool want_dout = request.needs_grad(dout);
        std::vector<OpDesc> ops;
        if (!want_v && !want_dout) return ops;
        OpDesc op;
        op.type = type;
        op.attrs = grad.attrs;
        op.SetInput(slots.v, {v});
        if (slots.with == "grad_x")
          op.SetInput("grad_x", {grad.Out("X@GRAD")});
        else if (!slots.with.empty())
          op.SetInput(slots.with, {dout});
        op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
        if (want_v) op.SetOutput(GradName(slots.v), {GradName(v)});
        if (want_dout) op.SetOutput(GradName(slots.dout), {GradName(dout)});
        ops.push_back(std::move(op));
        return ops;
      };
}

}  // namespace unary_internal
}  // namespace pd
