// SPDX-License-Identifier: Apache-2.0
// Recompute: what the forward ops make between checkpoints is not kept for the
// gradients but made again when they come to it. Less memory, more time.
#ifndef PD_LIBCORE_PASSES_RECOMPUTE_H_
#define PD_LIBCORE_PASSES_RECOMPUTE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Rewrites a program with its gradient ops, before the optimizer's: ops
/// between two of the variables `checkpoints` (or before the first) are
/// repeated before the first gradient op that reads what they made, and the
/// gradient ops read the copies ("x.subprog_0"). Kept all the same is what
/// random ops make, what is persistable, and what is made after the last
/// checkpoint. NotFound for a checkpoint that no forward op makes;
/// InvalidArgument for a program without gradient ops.
absl::Status Recompute(const std::vector<std::string>& checkpoints,
                       ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_RECOMPUTE_H_
