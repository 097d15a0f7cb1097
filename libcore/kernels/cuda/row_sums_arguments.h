// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in row_sums.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// Keys that are put in order among themselves before all are.
inline constexpr int64_t kOrderChunk = 256;
/// Terms of a sum that one thread adds.
inline constexpr int64_t kSumRun = 32;

/// `count` ids in order, equal ones in that of their places. A key is an id in
/// the upper 32 bits and its place in the lower ones; in the place of an id
/// that names no row it has `rows`.
struct RowOrderArgs {
  const void* ids;
  uint64_t *chunks, *keys;  ///< in order within each chunk, and all of them
  int32_t *begins, *ends;   ///< for each key, the keys of its id
  int64_t count, rows, padding;
  int32_t ids64;  ///< else int32
  int32_t* bad;   ///< set to 1 by an id out of range that is not `padding`
};

/// to[id] = the sum of the rows of `from` whose key has this id.
template <typename T>
struct RowSumsArgsOf {
  NumbersIn<T> from;
  NumbersOut<T> to;
  T* parts;  ///< sums of runs: two rows for each kSumRun keys
  const uint64_t* keys;
  const int32_t *begins, *ends;
  int64_t count, rows, width;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_ARGUMENTS_H_
