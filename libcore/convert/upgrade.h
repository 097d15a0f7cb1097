// SPDX-License-Identifier: Apache-2.0
// Programs as PaddlePaddle 1.x saved them, with the operator types of 2.x: many
// old types are gone from newer versions, and other programs know only the new
// ones. pd-upgrade(7) has the table.
#ifndef PD_LIBCORE_CONVERT_UPGRADE_H_
#define PD_LIBCORE_CONVERT_UPGRADE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// An operator type of 1.x, and the types of 2.x that compute the same.
struct OpUpgrade {
  std::string from;
  std::string to;         ///< "squeeze2, one_hot_v2"
  std::string condition;  ///< on which an op is replaced; "": always
};

/// The types that UpgradeProgram replaces, in name order.
std::vector<OpUpgrade> OpUpgrades();

struct UpgradeReport {
  std::map<std::string, int64_t> replaced;  ///< old type -> number of ops
  /// A line for each op that stays what it was, with the reason: "block 0, op 3
  /// (matmul): ...".
  std::vector<std::string> kept;
};

/// Replaces the ops of `program`, in all of its blocks, and makes it one of
/// 2.0 or later. Names of parameters, inputs and outputs stay. InvalidArgument
/// for a program with gradients, for an op that breaks its schema, and where
/// inference fails; the error names the op.
absl::StatusOr<UpgradeReport> UpgradeProgram(const OpRegistry& registry,
                                             ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_UPGRADE_H_
