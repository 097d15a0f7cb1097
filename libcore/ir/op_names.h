// SPDX-License-Identifier: Apache-2.0
// Facts about an op that its name and PaddlePaddle's own attributes tell,
// whatever its type.
#ifndef PD_LIBCORE_IR_OP_NAMES_H_
#define PD_LIBCORE_IR_OP_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

inline constexpr char kNameScopeAttr[] = "op_namescope";

/// The attribute op_role, a sum of OpRoles; kRoleForward where there is none.
int32_t RoleOf(const OpDesc& op);
/// The layer that the op belongs to, its op_namescope: "/stage1/0/conv1/"; ""
/// where there is none.
std::string NameScopeOf(const OpDesc& op);
/// Whether the op computes gradients: "relu_grad".
bool IsGradientOp(absl::string_view type);
/// Whether any block of the program has such an op.
bool HasGradientOps(const ProgramDesc& program);
/// Whether the op runs blocks: an attribute names one.
bool HasBlocks(const OpDesc& op);
/// Whether it is one of the two ops that name a model's inputs and outputs and
/// compute nothing.
bool IsFeedOrFetch(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_IR_OP_NAMES_H_
