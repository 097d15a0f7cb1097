// SPDX-License-Identifier: Apache-2.0
// What the kernels of sorting.cu are given.
#ifndef PD_LIBCORE_KERNELS_CUDA_SORTING_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_SORTING_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// `total` keys in lines of `line`, a power of two, being sorted by bitonic
/// merges. sort_parts does the merges of runs of `first` to `last` keys as far
/// as they stay within a part; sort_step compares keys `distance` apart for
/// runs of `last`.
struct SortArgs {
  uint64_t* keys;
  int64_t total, line, part, first, last, distance;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SORTING_ARGUMENTS_H_
