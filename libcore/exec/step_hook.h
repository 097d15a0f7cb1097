// SPDX-License-Identifier: Apache-2.0
// Observers of the steps of a plan while it runs: profiles and checks.
#ifndef PD_LIBCORE_EXEC_STEP_HOOK_H_
#define PD_LIBCORE_EXEC_STEP_HOOK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "libcore/exec/late_op.h"

namespace pd {

/// An op of a sub-block, with the variables of this run of the block.
struct BlockStep {
  int32_t block = 0;
  size_t index = 0;  ///< in the block
  const OpDesc* op = nullptr;
  const LateOp::Variables* inputs = nullptr;
  const LateOp::Variables* outputs = nullptr;
};

/// Sees every step, and every op of the blocks that a step runs. An error ends
/// the run.
class StepHook {
 public:
  virtual ~StepHook() = default;
  virtual void Before(size_t step) = 0;
  virtual absl::Status After(size_t step) = 0;
  virtual void BeforeInBlock(const BlockStep& /*step*/) {}
  virtual absl::Status AfterInBlock(const BlockStep& /*step*/) {
    return absl::OkStatus();
  }
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_STEP_HOOK_H_
