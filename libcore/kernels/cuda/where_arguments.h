// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in where.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_WHERE_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_WHERE_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// out = condition ? x : y; one that is null is 0.
struct SelectArgs {
  const uint8_t* condition;
  const void *x, *y;
  void* out;
  int64_t n;
};

/// Matrices of rows and columns with zeros outside a triangle.
struct TriangleArgs {
  const void* from;
  void* to;
  int64_t n, rows, columns, diagonal;
  int32_t lower;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_WHERE_ARGUMENTS_H_
