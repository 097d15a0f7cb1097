// SPDX-License-Identifier: Apache-2.0
#include "libcore/ir/op_names.h"

#include <algorithm>
#include <variant>

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

bool HasGradientOps(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      if (IsGradientOp(op.type)) return true;
  return false;
}

bool HasBlocks(const OpDesc& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(), [](const auto& attr) {
    return std::holds_alternative<BlockRef>(attr.second) ||
           std::holds_alternative<BlockRefs>(attr.second);
  });
}

bool IsFeedOrFetch(const OpDesc& op) {
  return op.type == "feed" || op.type == "fetch";
}

}  // namespace pd
