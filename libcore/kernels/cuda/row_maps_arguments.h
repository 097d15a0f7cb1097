// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in row_maps.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// Row r of `to` is row map[r] of `from`; -1: it is left alone, or `padding`
/// over and over.
struct RowGatherArgs {
  const void *from, *padding;
  void* to;
  const int64_t* map;
  int64_t rows, width, padding_width;
  int32_t bytes;  ///< of an element: 1, 2, 4 or 8
};

/// Row r of `to` is the sum of the rows members[begins[r]] and on, up to
/// begins[r + 1], of `from`.
struct RowSumArgs {
  const float* from;
  float* to;
  const int64_t *begins, *members;
  int64_t rows, width;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_ARGUMENTS_H_
