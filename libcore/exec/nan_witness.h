// SPDX-License-Identifier: Apache-2.0
// Values that a quick check for NaN omits, because any NaN or infinity of
// theirs appears in the output of a later op too: a sum, a product, a mean over
// all elements. A quick check finds only that a run has a bad value; the run is
// then repeated with every value checked.
#ifndef PD_LIBCORE_EXEC_NAN_WITNESS_H_
#define PD_LIBCORE_EXEC_NAN_WITNESS_H_

#include <vector>

#include "libcore/exec/plan.h"

namespace pd {

/// The output slot of `op`, which is normalized, that by a rule of its type
/// (NonFiniteRule) holds a NaN or an infinity whenever the variable `input` in
/// the input slot `slot` does; "" when no rule says so.
std::string WitnessSlot(const OpDesc& op, const std::string& slot,
                        const Tensor& input);

/// For each step and each of its outputs, whether a quick check must read it so
/// that no NaN or infinity of the run is missed. `able` is false for outputs
/// that the rules exempt from checks.
std::vector<std::vector<bool>> ValuesToCheck(
    const Plan& plan, const std::vector<std::vector<bool>>& able);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_NAN_WITNESS_H_
