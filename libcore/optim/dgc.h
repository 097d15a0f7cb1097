// SPDX-License-Identifier: Apache-2.0
// Momentum with deep gradient compression, as PaddlePaddle's
// DGCMomentumOptimizer appends it for one trainer.
#ifndef PD_LIBCORE_OPTIM_DGC_H_
#define PD_LIBCORE_OPTIM_DGC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// AppendOptimizer for kDgcMomentum. InvalidArgument for a clip that
/// is not one by norm, and for arguments out of range.
absl::StatusOr<OptimizerVars> AppendDgcMomentum(
    const OptimizerSpec& spec, std::vector<ParamGrad> params_grads,
    BlockBuilder* main, BlockBuilder* startup);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_DGC_H_
