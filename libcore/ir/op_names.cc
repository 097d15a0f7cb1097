// SPDX-License-Identifier: Apache-2.0
#include "libcore/ir/op_names.h"

#include "absl/strings/match.h"

namespace pd {

int32_t RoleOf(const OpDesc& op) {
  return op.AttrOr<int32_t>(kOpRoleAttr, kRoleForward);
}

std::string NameScopeOf(const OpDesc& op) {
  return op.AttrOr<std::string>(kNameScopeAttr, "");
}

bool IsGradientOp(absl::string_view type) {
  return absl::EndsWith(type, "_grad");
}

bool IsFeedOrFetch(const OpDesc& op) {
  return op.type == "feed" || op.type == "fetch";
}

}  // namespace pd
