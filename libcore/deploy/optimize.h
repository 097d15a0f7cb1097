// SPDX-License-Identifier: Apache-2.0
// What pd-export --optimize does: rewrites of an inference model that change
// its numbers in the last bits and make it smaller and faster.
#ifndef PD_LIBCORE_DEPLOY_OPTIMIZE_H_
#define PD_LIBCORE_DEPLOY_OPTIMIZE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/passes/pipeline.h"

namespace pd {

/// Folds each batch_norm that alone reads a conv2d's or depthwise_conv2d's
/// output, or the output of the elementwise_add of its bias, into filter and
/// bias: with s = Scale / sqrt(Variance + epsilon), Filter' = Filter * s and
/// bias' = (bias - Mean) * s + Bias, per output channel. float32 and NCHW;
/// others, and filters that two ops share, stay. Gives the number folded, and
/// the s of each filter where `factors` is given.
using FoldFactors = std::map<std::string, std::vector<double>>;
absl::StatusOr<int> FoldBatchNorms(InferenceModel* model,
                                   FoldFactors* factors = nullptr);

/// The passes of OptimizeModel by name, in the order in which they run.
std::vector<std::string> ModelPassNames();

/// Runs them but for those that `options` disables, shows it the program
/// without a label, and logs what was done.
absl::Status OptimizeModel(const PassOptions& options, InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_OPTIMIZE_H_
