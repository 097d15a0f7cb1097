// SPDX-License-Identifier: Apache-2.0
// The rewrites of pd-export --optimize: they change an inference model's
// numbers in the last bits and make it smaller and faster.
#ifndef PD_LIBCORE_DEPLOY_OPTIMIZE_H_
#define PD_LIBCORE_DEPLOY_OPTIMIZE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/passes/fold_batch_norms.h"

namespace pd {

/// FoldBatchNorms of libcore/passes, in place: filters and the Bias of the
/// norms keep their names, what is unused then goes.
absl::StatusOr<int> FoldBatchNorms(InferenceModel* model,
                                   FoldFactors* factors = nullptr);

/// The passes of OptimizeModel by name, in the order in which they run.
std::vector<std::string> ModelPassNames();

/// Runs them but for those that `options` disables, shows it the program
/// without a label, and logs what was done.
absl::Status OptimizeModel(const PassOptions& options, InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_OPTIMIZE_H_
