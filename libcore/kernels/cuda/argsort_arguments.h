// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in argsort.cu, and of those in top_k.cu that order.
#ifndef PD_LIBCORE_KERNELS_CUDA_ARGSORT_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ARGSORT_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/low_precision.h"

namespace pd::cuda {

/// `total` keys in lines of `line`, a power of two, being sorted by bitonic
/// merges. sort_parts does the merges of runs of `first` to `last` keys as far
/// as they stay within a part; sort_step compares keys `distance` apart for
/// runs of `last`.
struct SortArgs {
  uint64_t* keys;
  int64_t total, line, part, first, last, distance;
};

/// Lines of n elements `inner` apart, of which k are picked.
struct TopKArgs {
  FloatsIn x;
  FloatsOut out;
  int64_t* indices;
  int64_t lines, n, inner, k;
  int32_t largest;
};
struct PickedArgs {
  const int64_t* indices;
  FloatsIn dout;
  FloatsOut dx;
  int64_t lines, n, inner, k;
  int32_t* bad;  ///< set to 1 by an index that is out of range
};

/// Lines of n elements in order; `keys` has lines of `line` numbers.
struct OrderArgs {
  const float* x;
  float* out;
  int64_t* indices;
  uint64_t* keys;
  int64_t lines, n, inner, line;
  int32_t descending;
};

/// Where the largest or smallest element of each line is.
struct ExtremumArgs {
  const float* x;
  void* out;
  int64_t lines, n, inner;
  int32_t largest, out64;  ///< out: int64, else int32
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ARGSORT_ARGUMENTS_H_
