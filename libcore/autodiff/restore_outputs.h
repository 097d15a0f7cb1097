// SPDX-License-Identifier: Apache-2.0
// Outputs that only a gradient reads (XShape, SavedMean, Mask, the scopes of a
// loop) are missing in programs that were saved for inference: PaddlePaddle's
// jit.save prunes them. They follow from the op's inputs, so the op is made to
// compute them again. Where an op leaves them out because it has is_test, it is
// made one that trains, but drops nothing.
#ifndef PD_LIBCORE_AUTODIFF_RESTORE_OUTPUTS_H_
#define PD_LIBCORE_AUTODIFF_RESTORE_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Gives op number `at` of a block the outputs that its gradient ops demand and
/// that it lacks, as new variables of the block. `needs_grad` as in
/// GradRequest. The errors are those of inference and of the gradient maker.
absl::Status RestoreOutputs(
    const OpRegistry& registry, int32_t block, size_t at,
    const std::function<bool(const std::string&)>& needs_grad,
    ProgramDesc* program);

/// The name in slot `slot` of an op that runs a block, where it keeps the
/// variables of the block's runs; restored where it is missing.
std::string RestoreScopes(int32_t block, size_t at, const char* slot,
                          ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_RESTORE_OUTPUTS_H_
