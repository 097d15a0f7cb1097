// SPDX-License-Identifier: Apache-2.0
// Which values a block starts with reach the values that it ends with.
#ifndef PD_LIBCORE_AUTODIFF_BLOCK_FLOW_H_
#define PD_LIBCORE_AUTODIFF_BLOCK_FLOW_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The variables whose values from before a block may reach, through ops that
/// have gradients, one of the variables `after` as it is at the block's end.
/// A variable that the block leaves alone is among them when it is in `after`.
/// Variables for which `differentiable` is false pass nothing on.
std::set<std::string> ReachesEnd(
    const OpRegistry& registry, const ProgramDesc& program, int32_t block,
    const std::function<bool(const std::string&)>& differentiable,
    std::set<std::string> after);

/// The variables that need a gradient at the end of each run of a loop's block,
/// where those of `after` have one behind the loop: what reaches these in the
/// same run or in a later one.
std::set<std::string> ReachesLoopEnd(
    const OpRegistry& registry, const ProgramDesc& program, int32_t block,
    const std::function<bool(const std::string&)>& differentiable,
    std::set<std::string> after);

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_BLOCK_FLOW_H_
