// SPDX-License-Identifier: Apache-2.0
// Out = s - log(sum(exp(s))) along `axis`, s = max(X - max(X), -64)
// X@GRAD = Out@GRAD - exp(Out) * sum(Out@GRAD)
// The floor of -64 is that of PaddlePaddle's CPU kernel.
#include <algorithm>
#include <cmath>

#include "libcore/ops/activation/softmax_lines.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/op_formula.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct LogSoftmaxFormula {
  template <typename T>
  static void Line(const T* in, T max, int64_t begin, int64_t end,
                   int64_t stride, T* out) {
    T sum = T(0);
    for (int64_t i = begin; i < end; i += stride) {
      // NaN must stay: std::max(NaN, -64) is NaN in this order only.
      out[i] = std::max(in[i] - max, T(-64));
      sum += std::exp(out[i]);
    }
    const T log_sum = std::log(sum);
    for (int64_t i = begin; i < end; i += stride) out[i] -= log_sum;
  }

  template <typename T>
  static void Gradient(const AxisView& view, const T* y, const T* dy, T* dx) {
    ForEachLine(view, [&](int64_t, int64_t begin) {
      const int64_t end = begin + view.n * view.inner;
      T sum = T(0);
      for (int64_t i = begin; i < end; i += view.inner) sum += dy[i];
      for (int64_t i = begin; i < end; i += view.inner)
        dx[i] = dy[i] - std::exp(y[i]) * sum;
    });
  }

  // For the cotangent p of X@GRAD, with E = exp(Out): Out@GRAD gets
  // p - sum(p E), Out gets -p E sum(Out@GRAD).
  static absl::StatusOr<std::vector<OpDesc>> Second(
      const GradRequest& request) {
    const OpDesc& grad = request.op;
    const int32_t axis = grad.Attr<int32_t>("axis");
    const std::string out = grad.In("Out"), dout = grad.In("Out@GRAD");
    const std::string p = CotangentOf(grad, "X@GRAD");
    OpFormula f(grad);
    const std::string weighed = f.Mul(p, f.Unary("exp", out));
    if (request.needs_grad(dout))
      f.Give(f.Sub(p, f.SumAlong(weighed, axis)), dout);
    if (request.needs_grad(out))
      f.Give(f.Scale(f.Mul(weighed, f.SumAlong(dout, axis)), -1), out);
    return f.Take();
  }
};

}  // namespace

absl::Status RegisterLogSoftmax(OpRegistry* registry) {
  return AddSoftmaxLines<LogSoftmaxFormula>(registry, "log_softmax");
}

}  // namespace pd
