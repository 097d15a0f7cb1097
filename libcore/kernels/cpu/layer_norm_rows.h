// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of the rows of a row-major matrix. Sums are of floats, in
// as many parts as a vector has lanes; the variance is the mean of the squared
// differences from the mean.
#ifndef PD_LIBCORE_KERNELS_CPU_LAYER_NORM_ROWS_H_
#define PD_LIBCORE_KERNELS_CPU_LAYER_NORM_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace pd {
namespace cpu {

struct NormRows {
  int64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
};

/// Inputs and outputs of the normalisation; y may be x. `scale` and `bias` have
/// `columns` elements, null: 1 and 0. `mean` and `variance` receive one number
/// for each row where they are not null.
struct NormValues {
  const float *x, *scale, *bias;
  float *y, *mean, *variance;
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row.
void LayerNormRows(const NormRows& n, const NormValues& v);

/// Inputs and outputs of the gradient. Null: absent, or not wanted. dx may be
/// dy.
struct NormGrad {
  const float *x, *dy, *scale, *mean, *variance;
  float *dx, *dscale, *dbias;
};

/// Bytes that LayerNormGradRows needs as `sums`.
size_t NormGradScratch(const NormRows& n);
void LayerNormGradRows(const NormRows& n, const NormGrad& g, float* sums);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_LAYER_NORM_ROWS_H_
