// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in gather.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_GATHER_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_GATHER_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// The meaning of an index below 0.
enum NegativeIndex : int32_t { kNoPlace, kFromTheEnd, kNowhere };

/// n slices of a tensor, `width` elements each. Slice i is number
///   walk(i) + the sum over d < k of index[i % period, d] * strides[d]
struct PlacesArgs {
  const void* index;
  const void* from;
  void* to;
  uint64_t* keys;  ///< slice << 32 | i
  int64_t n, line, width, period;
  Walk<1> walk;
  int64_t extents[kMostDims], strides[kMostDims];
  int32_t k, negative;
  int32_t index64;  ///< else int32
  int32_t* bad;     ///< set to 1 by a number that names no slice
};

/// The operation on the elements that go to one place.
enum RunKind : int32_t {
  kAddRun,   ///< to[place] += each of `from`
  kLastRun,  ///< to[place] = the last of `from`; 0 without it
  kGiveRun,  ///< to[the last one] = from[place], and 0 for the others
};

/// Elements by the places in sorted `keys`.
struct RunsArgs {
  const uint64_t* keys;
  const float* from;
  float* to;
  int64_t n, width;
  RunKind kind;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_GATHER_ARGUMENTS_H_
