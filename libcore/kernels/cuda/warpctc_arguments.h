// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in warpctc.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_WARPCTC_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_WARPCTC_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/spans_arguments.h"

namespace pd::cuda {

/// warpctc, and its gradient of `logits` from `kept` and dloss. kept is [steps,
/// count, classes]. Row t of sequence i is row t * count + i of logits where
/// the batch is padded, else row t of its span.
struct CtcArgs {
  SpanArgs logits, labels;
  const float* x;
  const void* label;
  const float* dloss;
  float *kept, *loss, *dx;
  double* log_sums;  ///< of exp(x), for each row of kept
  double* prefixes;  ///< [count, steps, states]
  double* suffixes;  ///< [count, 3, states]
  int64_t count, classes, steps, states, blank;
  int32_t padded, wide, by_times;
  int32_t* bad_label;  ///< set to 1 by a label that is no class
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_WARPCTC_ARGUMENTS_H_
