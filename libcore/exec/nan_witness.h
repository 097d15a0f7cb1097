// SPDX-License-Identifier: Apache-2.0
// Which values a quick check need not look at, because a later op turns any NaN
// or infinity of theirs into one of its own: a sum, a product, a mean over all
// elements. Finding that something is bad is then enough: the step is repeated
// with a look at everything.
#ifndef PD_LIBCORE_EXEC_NAN_WITNESS_H_
#define PD_LIBCORE_EXEC_NAN_WITNESS_H_

#include <vector>

#include "libcore/exec/plan.h"

namespace pd {

/// The output slot of `op` that holds a bad number whenever the variable in the
/// input slot `slot` does, wherever it is there; "" when none surely does.
/// `input` is the variable.
std::string WitnessSlot(const OpDesc& op, const std::string& slot,
                        const Tensor& input);

/// For each step and each of its outputs, whether it must be looked at so that
/// no bad number of the run stays unseen. `looked_at` says for each whether
/// that is possible and means something there.
std::vector<std::vector<bool>> ValuesToCheck(
    const Plan& plan, const std::vector<std::vector<bool>>& looked_at);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_NAN_WITNESS_H_
