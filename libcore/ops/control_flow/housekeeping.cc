// SPDX-License-Identifier: Apache-2.0
// Operators by which programs keep house on devices of their own; here they
// have little to do.
//   alloc_float_status: eight flags of the device, which say that a number
//     overflowed. A CPU has none: they are 0
//   clear_float_status: the flags set to 0; get_float_status: as they are
//   delete_var: the variables X are not needed any more. A plan knows by itself
//     which memory is free, so nothing is to be done
// No gradients.
#include <cstring>
#include <utility>

#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferFlags(InferContext* context) {
  context->SetOutput("FloatStatus", {8}, DType::kFloat32);
  return absl::OkStatus();
}

absl::Status InferSameFlags(InferContext* context) {
  context->Share("FloatStatus", "FloatStatusOut");
  return absl::OkStatus();
}

Step ZeroStep(Tensor* out) {
  return [out](const RunContext&) {
    if (out->bytes() > 0) std::memset(out->raw(), 0, out->bytes());
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindAllocFlags(BindContext* context) {
  return ZeroStep(context->Output("FloatStatus"));
}

absl::StatusOr<Step> BindClearFlags(BindContext* context) {
  return ZeroStep(context->Output("FloatStatusOut"));
}

absl::StatusOr<Step> BindGetFlags(BindContext* context) {
  context->Alias(context->Input("FloatStatus"),
                 context->Output("FloatStatusOut"));
  return Step();
}

absl::StatusOr<Step> BindDeleteVar(BindContext* context) {
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    if (Tensor* x = context->Input("X", i)) context->NoBuffer(x);
  return Step([](const RunContext&) { return absl::OkStatus(); });
}

}  // namespace

absl::Status RegisterHousekeeping(OpRegistry* registry) {
  OpDef alloc("alloc_float_status");
  alloc.Output("FloatStatus").Infer(InferFlags).NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(alloc.Reference(BindAllocFlags))));

  OpDef clear("clear_float_status"), get("get_float_status");
  for (OpDef* op : {&clear, &get}) {
    op->Input("FloatStatus").Output("FloatStatusOut");
    op->Infer(InferSameFlags).NoGrad();
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(clear.Reference(BindClearFlags))));
  PD_RETURN_IF_ERROR(registry->Add(std::move(get.Reference(BindGetFlags))));

  OpDef drop("delete_var");
  drop.Inputs("X").Infer(InferNothing).NoGrad();
  return registry->Add(std::move(drop.Reference(BindDeleteVar)));
}

}  // namespace pd
