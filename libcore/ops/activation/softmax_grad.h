// SPDX-License-Identifier: Apache-2.0
// The gradient of a softmax, which softmax and gumbel_softmax share.
#ifndef PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_GRAD_H_
#define PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_GRAD_H_

#include <cstdint>

#include "libcore/ops/common/axis_view.h"

namespace pd {

/// dx = y * (dy - sum(y * dy)) * factor along the view's axis, where y is a
/// softmax along it; dx may be dy.
template <typename T>
void SoftmaxGrad(const AxisView& view, const T* y, const T* dy, T factor,
                 T* dx) {
  ForEachLine(view, [&](int64_t, int64_t start) {
    const int64_t end = start + view.n * view.inner;
    T dot = T(0);
    for (int64_t i = start; i < end; i += view.inner) dot += y[i] * dy[i];
    for (int64_t i = start; i < end; i += view.inner)
      dx[i] = y[i] * (dy[i] - dot) * factor;
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_GRAD_H_
