// SPDX-License-Identifier: Apache-2.0
// Quantization-aware training: puts PaddlePaddle's fake-quantize ops into a
// network. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_QUANT_AWARE_H_
#define PD_LIBCORE_NN_QUANT_AWARE_H_

#include "absl/status/status.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"

namespace pd {

/// Rewrites `main` and `test` as the job's `quant` says, and adds first values
/// of the scales to `startup`. A variable that several layers read is quantized
/// once. InvalidArgument with its place where there is nothing to quantize or
/// an entry of `skip` matches nothing.
absl::Status SimulateQuantization(const LoadedJob& job,
                                  const OpRegistry& registry,
                                  BuiltModel* built);

}  // namespace pd

#endif  // PD_LIBCORE_NN_QUANT_AWARE_H_
