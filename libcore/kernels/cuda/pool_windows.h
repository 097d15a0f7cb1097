// SPDX-License-Identifier: Apache-2.0
// Input positions that a pooling window covers (libcore/ops/conv/window.h).
#ifndef PD_LIBCORE_KERNELS_CUDA_POOL_WINDOWS_H_
#define PD_LIBCORE_KERNELS_CUDA_POOL_WINDOWS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// Channels that a thread of pool_packs has.
inline constexpr int kPoolPack = 8;

/// The input positions [begin, end) of window `o` on an axis.
PD_DEVICE void WindowOf(const PoolAxis& a, bool adaptive, int32_t o,
                        int32_t* begin, int32_t* end, int32_t* padded) {
  if (adaptive) {
    *begin = static_cast<int32_t>(int64_t{o} * a.in / a.out);
    *end = static_cast<int32_t>((int64_t{o} + 1) * a.in / a.out +
                                ((int64_t{o} + 1) * a.in % a.out != 0 ? 1 : 0));
    *padded = *end - *begin;
    return;
  }
  const int32_t first = o * a.stride - a.pad;
  const int32_t last = first + a.kernel;
  *padded = (last < a.in + a.pad ? last : a.in + a.pad) - first;
  *begin = first < 0 ? 0 : first;
  *end = last < a.in ? last : a.in;
  if (*end < *begin) *end = *begin;
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_POOL_WINDOWS_H_
