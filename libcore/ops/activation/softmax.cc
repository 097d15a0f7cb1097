// SPDX-License-Identifier: Apache-2.0
// Out = exp(X - max) / sum(exp(X - max)) along `axis`
// X@GRAD = Out * (Out@GRAD - sum(Out * Out@GRAD))
// A line with a NaN, or of -inf alone, becomes NaN.
#include <algorithm>
#include <cmath>

#include "libcore/ops/activation/softmax_grad.h"
#include "libcore/ops/activation/softmax_lines.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct SoftmaxFormula {
  template <typename T>
  static void Line(const T* in, T max, int64_t begin, int64_t end,
                   int64_t stride, T* out) {
    T sum = T(0);
    for (int64_t i = begin; i < end; i += stride)
      sum += out[i] = std::exp(in[i] - max);
    for (int64_t i = begin; i < end; i += stride) out[i] /= sum;
  }

  template <typename T>
  static void Gradient(const AxisView& view, const T* y, const T* dy, T* dx) {
    SoftmaxGrad(view, y, dy, T(1), dx);
  }
};

}  // namespace

absl::Status RegisterSoftmax(OpRegistry* registry) {
  return AddSoftmaxLines<SoftmaxFormula>(registry, "softmax");
}

}  // namespace pd
