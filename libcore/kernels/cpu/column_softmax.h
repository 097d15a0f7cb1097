// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax of lines that do not lie together: over the middle
// axis of an array [outer, n, inner].
#ifndef PD_LIBCORE_KERNELS_CPU_COLUMN_SOFTMAX_H_
#define PD_LIBCORE_KERNELS_CPU_COLUMN_SOFTMAX_H_

#include <cstdint>

namespace pd {
namespace cpu {

/// The extents of an array whose middle axis is normalized.
struct ColumnShape {
  int64_t outer = 0, n = 0, inner = 0;
};

/// softmax, or with `log` its logarithm, where an element lies at most 64 below
/// its line's largest, as PaddlePaddle has it. `out` may be `x`.
void ColumnSoftmax(const float* x, const ColumnShape& shape, bool log,
                   float* out);

/// dx = y * (dy - sum(y * dy)), or with `log` dy - exp(y) * sum(dy), the sums
/// being those of a line; `dx` may be `dy`.
void ColumnSoftmaxGrad(const float* y, const float* dy,
                       const ColumnShape& shape, bool log, float* dx);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_COLUMN_SOFTMAX_H_
