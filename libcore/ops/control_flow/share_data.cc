// SPDX-License-Identifier: Apache-2.0
// Out = X, the same bytes: share_data; memcpy, which moves a tensor to another
// place (there is only one here). No gradients.
// share_buffer: Out[i] = XOut[i] = X[i]. PaddlePaddle's passes put it before an
// op that is to write its result over its operand; here plans decide that.
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindShare(BindContext* context) {
  return AliasOrCopy(context, context->Input("X"), context->Output("Out"));
}

absl::Status InferShareBuffer(InferContext* context) {
  for (const char* slot : {"Out", "XOut"})
    for (size_t i = 0; i < context->OutputCount(slot); ++i) {
      if (i >= context->InputCount("X"))
        return InvalidArgument("%s has %d variables, X has %d", slot,
                               context->OutputCount(slot),
                               context->InputCount("X"));
      context->Share("X", slot, i);
    }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindShareBuffer(BindContext* context) {
  std::vector<std::pair<Tensor*, Tensor*>> pairs;
  for (const char* slot : {"XOut", "Out"})
    for (size_t i = 0; i < context->OutputCount(slot); ++i) {
      Tensor* x = context->Input("X", i);
      Tensor* out = context->Output(slot, i);
      if (out == nullptr) continue;
      pairs.emplace_back(x, out);
    }
  return Step([pairs = std::move(pairs)](const RunContext&) {
    for (const auto& [x, out] : pairs) CopyUnlessSame(x, out);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterShareData(OpRegistry* registry) {
  for (const char* type : {"share_data", "memcpy"}) {
    OpDef op(type);
    op.Input("X").Output("Out");
    op.Infer(InferUnary).NoGrad().Reference(BindShare);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef buffer("share_buffer");
  buffer.Inputs("X").Outputs("Out").OptionalOutputs("XOut");
  buffer.Infer(InferShareBuffer).NoGrad().Reference(BindShareBuffer);
  return registry->Add(std::move(buffer));
}

}  // namespace pd
