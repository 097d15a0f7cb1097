// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax, which normalize lines along `axis`. They differ in
// the formulas of a line and of the gradient.
#ifndef PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_LINES_H_
#define PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_LINES_H_

#include <algorithm>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Out from X by Formula::Line<T>(in, max, begin, end, stride, out): elements
/// begin, begin + stride, ... below end of `in`, whose maximum is `max`.
template <typename Formula>
absl::StatusOr<Step> BindSoftmaxLines(BindContext* context) {
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
      ForEachLine(view, [&](int64_t, int64_t begin) {
        const int64_t end = begin + view.n * view.inner;
        T max = in[begin];
        for (int64_t i = begin; i < end; i += view.inner)
          max = std::max(max, in[i]);
        Formula::template Line<T>(in, max, begin, end, view.inner, result);
      });
      return absl::OkStatus();
    });
  });
}

/// X@GRAD from Out and Out@GRAD by Formula::Gradient<T>(view, y, dy, dx).
template <typename Formula>
absl::StatusOr<Step> BindSoftmaxLinesGrad(BindContext* context) {
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
      Formula::template Gradient<T>(view, out->data<T>(), dout->data<T>(),
                                    dx->data<T>());
      return absl::OkStatus();
    });
  });
}

inline absl::Status InferSoftmaxLines(InferContext* context) {
  const Shape& shape = context->Input("X").shape;
  if (!shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()).status());
  return InferUnary(context);
}

inline absl::Status InferSoftmaxLinesGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

/// Adds the op `type` and its gradient op.
template <typename Formula>
absl::Status AddSoftmaxLines(OpRegistry* registry, const std::string& type) {
  const std::string grad_type = type + "_grad";
  OpDef op(type);
  op.Input("X").Output("Out").Attr("axis", int32_t{-1});
  op.Infer(InferSoftmaxLines).Reference(BindSoftmaxLines<Formula>);
  op.Grad(GradSpec{grad_type, {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(grad_type);
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("axis", int32_t{-1});
  grad.Infer(InferSoftmaxLinesGrad).Grad(GradMaker(Formula::Second));
  grad.Reference(BindSoftmaxLinesGrad<Formula>);
  return registry->Add(std::move(grad));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_SOFTMAX_LINES_H_
