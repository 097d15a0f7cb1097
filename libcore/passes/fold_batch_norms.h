// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_PASSES_FOLD_BATCH_NORMS_H_
#define PD_LIBCORE_PASSES_FOLD_BATCH_NORMS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/passes/pipeline.h"

namespace pd {

/// By what the output channels of a filter, by name, have been multiplied.
using FoldFactors = std::map<std::string, std::vector<double>>;

/// Folds each batch_norm that alone reads a conv2d's or depthwise_conv2d's
/// output, or the output of the elementwise_add of its bias, into filter and
/// bias: with s = Scale / sqrt(Variance + epsilon), Filter' = Filter * s and
/// bias' = (bias - Mean) * s + Bias, per output channel. For batch norms that
/// use the statistics they are given; float32 and NCHW. Others stay, and
/// filters that two ops share. What it makes goes to `context.define`. Gives
/// the number folded, and the s of each filter where `factors` is given.
absl::StatusOr<int> FoldBatchNorms(const PassContext& context,
                                   ProgramDesc* program, FoldFactors* factors);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_FOLD_BATCH_NORMS_H_
