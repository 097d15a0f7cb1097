// SPDX-License-Identifier: Apache-2.0
// The sequences of a batch, as libcore/ops/sequence/sequence_spans.h has them.
#ifndef PD_LIBCORE_KERNELS_CUDA_SPANS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_SPANS_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/integer_at.h"

namespace pd::cuda {

/// Sequence i is rows [offsets[i], offsets[i + 1]), or where there are lengths
/// the first lengths[i] of `width` rows.
struct SpanArgs {
  const int64_t* offsets;
  const void* lengths;
  int64_t count, width;
  int32_t wide;  ///< the lengths are int64, else int32
  int32_t* bad;  ///< set to 1 by a length outside [0, width]
};

struct DeviceSpan {
  int64_t start, length;
};

PD_DEVICE DeviceSpan SpanAt(const SpanArgs& p, int64_t i) {
  if (p.lengths == nullptr)
    return {p.offsets[i], p.offsets[i + 1] - p.offsets[i]};
  const int64_t length = WholeAt(p.lengths, p.wide, i);
  if (length >= 0 && length <= p.width) return {i * p.width, length};
  *p.bad = 1;
  return {i * p.width, 0};
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SPANS_ARGUMENTS_H_
