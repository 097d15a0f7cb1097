// SPDX-License-Identifier: Apache-2.0
// Out = exp(X - max) / sum(exp(X - max)) along `axis`
// X@GRAD = Out * (Out@GRAD - sum(Out * Out@GRAD))
// A line with a NaN, or of -inf alone, becomes NaN.
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/activation/softmax_grad.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindSoftmax(BindContext* context) {
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
        for (int64_t i = start; i < end; i += view.inner)
          sum += result[i] = std::exp(in[i] - max);
        for (int64_t i = start; i < end; i += view.inner) result[i] /= sum;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context) {
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
      SoftmaxGrad(view, out->data<T>(), dout->data<T>(), T(1), dx->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferSoftmax(InferContext* context) {
  const Shape& shape = context->Input("X").shape;
  if (!shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()).status());
  return InferUnary(context);
}

absl::Status InferSoftmaxGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSoftmax(OpRegistry* registry) {
  OpDef softmax("softmax");
  softmax.Input("X").Output("Out").Attr("axis", int32_t{-1});
  softmax.Infer(InferSoftmax).Reference(BindSoftmax);
  softmax.Grad(GradSpec{"softmax_grad", {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(softmax)));

  OpDef grad("softmax_grad");
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("axis", int32_t{-1});
  grad.Infer(InferSoftmaxGrad).NoGrad().Reference(BindSoftmaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
