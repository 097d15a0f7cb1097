// SPDX-License-Identifier: Apache-2.0
// Out = X, the same bytes: share_data; memcpy, which moves a tensor to another
// place (there is only one here). No gradients.
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindShare(BindContext* context) {
  return AliasOrCopy(context, context->Input("X"), context->Output("Out"));
}

}  // namespace

absl::Status RegisterShareData(OpRegistry* registry) {
  for (const char* type : {"share_data", "memcpy"}) {
    OpDef op(type);
    op.Input("X").Output("Out");
    op.Infer(InferUnary).NoGrad().Reference(BindShare);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
