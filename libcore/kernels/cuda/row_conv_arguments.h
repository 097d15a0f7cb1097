// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in row_conv.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_ROW_CONV_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ROW_CONV_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// Rows of `columns` elements; ends[r] and begins[r]: the sequence of row r.
struct RowConvArgs {
  const float *x, *filter, *dout;
  float* to;
  const int64_t *begins, *ends;
  int64_t rows, columns, context;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ROW_CONV_ARGUMENTS_H_
