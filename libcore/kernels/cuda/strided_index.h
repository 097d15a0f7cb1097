// SPDX-License-Identifier: Apache-2.0
// Places of elements along a Walk.
#ifndef PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_
#define PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// i / d of numbers that are not negative. A GPU divides 32 bits much faster.
PD_DEVICE int64_t Quotient(int64_t i, int64_t d) {
  if (((i | d) >> 32) == 0)
    return static_cast<uint32_t>(i) / static_cast<uint32_t>(d);
  return i / d;
}

/// Where element i lies in each of the tensors.
template <int K>
PD_DEVICE void Place(const Walk<K>& walk, int64_t i, int64_t* places) {
  for (int k = 0; k < K; ++k) places[k] = 0;
  for (int d = walk.dims - 1; d > 0; --d) {
    const int64_t rest = Quotient(i, walk.extents[d]);
    const int64_t at = i - rest * walk.extents[d];
    for (int k = 0; k < K; ++k) places[k] += at * walk.strides[d][k];
    i = rest;
  }
  if (walk.dims > 0)
    for (int k = 0; k < K; ++k) places[k] += i * walk.strides[0][k];
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_
