// SPDX-License-Identifier: Apache-2.0
// What happens to gradients before the update. Internal to libcore/optim.
#ifndef PD_LIBCORE_OPTIM_GRAD_OPS_H_
#define PD_LIBCORE_OPTIM_GRAD_OPS_H_

#include <vector>

#include "absl/status/status.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// Marks an op as part of the update of a parameter.
void MarkOptimize(const ParamGrad& pair, OpDesc* op);

/// Clips the gradients; a pair's `grad` then names the clipped one.
absl::Status AppendGradClip(const GradClip& clip, std::vector<ParamGrad>* pairs,
                            BlockBuilder* main);

/// Adds a parameter's decay to its gradient.
absl::Status AppendWeightDecay(const WeightDecay& decay, const ParamGrad& pair,
                               BlockBuilder* main);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_GRAD_OPS_H_
