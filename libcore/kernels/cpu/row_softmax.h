// SPDX-License-Identifier: Apache-2.0
// Softmax of the rows of a row-major matrix.
#ifndef PD_LIBCORE_KERNELS_CPU_ROW_SOFTMAX_H_
#define PD_LIBCORE_KERNELS_CPU_ROW_SOFTMAX_H_

#include <cstdint>

namespace pd {
namespace cpu {

/// softmax[r, :] of rows [0, rows). Where given, maximum[r] and log_sum[r]
/// receive the row's maximum m and log(sum exp(x - m)).
void RowSoftmax(const float* x, int64_t rows, int64_t columns, float* softmax,
                float* maximum, float* log_sum);

/// dx[r, :] = y[r, :] * (dy[r, :] - sum(y[r, :] * dy[r, :])), where y is a
/// softmax; dx may be dy.
void RowSoftmaxGrad(const float* y, const float* dy, int64_t rows,
                    int64_t columns, float* dx);

/// dx[r, :] = dy[r, :] - exp(y[r, :]) * sum(dy[r, :]), where y is the logarithm
/// of a softmax; dx may be dy.
void RowLogSoftmaxGrad(const float* y, const float* dy, int64_t rows,
                       int64_t columns, float* dx);

/// maximum[r] and log_sum[r] alone; log_sum is NaN where maximum is not finite.
void RowLogSum(const float* x, int64_t rows, int64_t columns, float* maximum,
               float* log_sum);

/// out[r] = log(sum(exp(x[r, :]))), and dx[r, :] = dout[r] * exp(x[r, :] -
/// out[r]); dx may be x.
void RowLogSumExp(const float* x, int64_t rows, int64_t columns, float* out);
void RowLogSumExpGrad(const float* x, const float* out, const float* dout,
                      int64_t rows, int64_t columns, float* dx);

/// The first two on the calling thread alone.
void RowSoftmaxHere(const float* x, int64_t rows, int64_t columns,
                    float* softmax, float* maximum, float* log_sum);
void RowSoftmaxGradHere(const float* y, const float* dy, int64_t rows,
                        int64_t columns, float* dx);

/// to[r, :] = factor[r] * from[r, :].
void ScaleRows(const float* from, const float* factor, int64_t rows,
               int64_t columns, float* to);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_ROW_SOFTMAX_H_
