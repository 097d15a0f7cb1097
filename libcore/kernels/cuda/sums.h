// SPDX-License-Identifier: Apache-2.0
// Sums by the threads of a block.
#ifndef PD_LIBCORE_KERNELS_CUDA_SUMS_H_
#define PD_LIBCORE_KERNELS_CUDA_SUMS_H_

#include <cstdint>

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

struct Plus {
  template <typename T>
  PD_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

/// The sum of f(i) over i in [0, n), given to all threads; in one order.
template <typename F>
PD_DEVICE auto SumOf(const Block& block, int64_t n, const F& f) {
  PerThread<decltype(f(n) + f(n))> part(0);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < n; i += block.threads()) part[thread] += f(i);
  });
  return block.Reduce(&part, Plus());
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SUMS_H_
