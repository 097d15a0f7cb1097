// SPDX-License-Identifier: Apache-2.0
// Out = s - log(sum(exp(s))) along `axis`, s = max(X - max(X), -64)
// X@GRAD = Out@GRAD - exp(Out) * sum(Out@GRAD)
// The floor of -64 is that of PaddlePaddle's CPU kernel.
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindLogSoftmax(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ForEachLine(view, [&](int64_t, int64_t start) {
        const int64_t end = start + view.n * view.inner;
        T max = in[start];
        for (int64_t i = start; i < end; i += view.inner)
          max = std::max(max, in[i]);
        T sum = T(0);
        for (int64_t i = start; i < end; i += view.inner) {
          // NaN must stay: std::max(NaN, -64) is NaN in this order only.
          result[i] = std::max(in[i] - max, T(-64));
          sum += std::exp(result[i]);
        }
        const T log_sum = std::log(sum);
        for (int64_t i = start; i < end; i += view.inner) result[i] -= log_sum;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLogSoftmaxGrad(BindContext* context) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->MayShare(dout, dx);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(out->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* y = out->data<T>();
      const T* dy = dout->data<T>();
      T* result = dx->data<T>();
      ForEachLine(view, [&](int64_t, int64_t start) {
        const int64_t end = start + view.n * view.inner;
        T sum = T(0);
        for (int64_t i = start; i < end; i += view.inner) sum += dy[i];
        for (int64_t i = start; i < end; i += view.inner)
          result[i] = dy[i] - std::exp(y[i]) * sum;
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferLogSoftmax(InferContext* context) {
  const Shape& shape = context->Input("X").shape;
  if (!shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()).status());
  return InferUnary(context);
}

absl::Status InferLogSoftmaxGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLogSoftmax(OpRegistry* registry) {
  OpDef log_softmax("log_softmax");
  log_softmax.Input("X").Output("Out").Attr("axis", int32_t{-1});
  log_softmax.Infer(InferLogSoftmax).Reference(BindLogSoftmax);
  log_softmax.Grad(GradSpec{"log_softmax_grad", {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(log_softmax)));

  OpDef grad("log_softmax_grad");
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("axis", int32_t{-1});
  grad.Infer(InferLogSoftmaxGrad).NoGrad().Reference(BindLogSoftmaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
