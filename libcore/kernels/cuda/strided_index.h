// SPDX-License-Identifier: Apache-2.0
// Places of elements along a Walk.
#ifndef PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_
#define PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// Where element i lies in each of the tensors. Of an element below 2^31 all
/// quotients are of 32 bits, which take a fifth of the time of 64.
template <int K>
PD_DEVICE void Place(const Walk<K>& walk, int64_t i, int64_t* places) {
  for (int k = 0; k < K; ++k) places[k] = 0;
  int d = walk.dims - 1;
  if (d < 0) return;
  if (i >> 31 == 0) {
    constexpr int64_t kAbove = int64_t{1} << 31;
    for (; d > 0; --d) {
      const auto rest = static_cast<uint32_t>(i);
      const auto extent = static_cast<uint32_t>(
          walk.extents[d] < kAbove ? walk.extents[d] : kAbove);
      const uint32_t quotient = rest / extent;
      const int64_t at = rest - quotient * extent;
      for (int k = 0; k < K; ++k) places[k] += at * walk.strides[d][k];
      i = quotient;
    }
  }
  for (; d > 0; --d) {
    const int64_t at = i % walk.extents[d];
    i /= walk.extents[d];
    for (int k = 0; k < K; ++k) places[k] += at * walk.strides[d][k];
  }
  for (int k = 0; k < K; ++k) places[k] += i * walk.strides[0][k];
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_STRIDED_INDEX_H_
