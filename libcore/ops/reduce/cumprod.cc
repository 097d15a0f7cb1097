// SPDX-License-Identifier: Apache-2.0
// Out[i] = X[0] X[1] ... X[i] along `dim`.
// X@GRAD[i] = conj(X[0] ... X[i-1]) R[i], where
//   R[i] = Out@GRAD[i] + conj(X[i+1]) R[i+1]
// is the gradient of what follows: no division, so zeros do no harm.
#include <complex>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferCumprodForward(InferContext* context) {
  const Shape& shape = context->Input("X").shape;
  if (!shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("dim"), shape.size(), "dim")
            .status());
  return InferUnary(context);
}

absl::StatusOr<Step> BindCumprodForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("dim")));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(view, [&](int64_t, int64_t start) {
        const T* in = x->data<T>() + start;
        T* result = out->data<T>() + start;
        T product = T(1);
        for (int64_t i = 0; i < view.n; ++i)
          result[i * view.inner] = product = product * in[i * view.inner];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindCumprodGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dout = context->Input("Out@GRAD");
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("dim")));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(view, [&](int64_t, int64_t start) {
        const int64_t step = view.inner;
        const T *in = x->data<T>() + start, *d = dout->data<T>() + start;
        T* result = dx->data<T>() + start;
        T rest = T(0);
        for (int64_t i = view.n; i-- > 0;) {
          const T next = i + 1 < view.n ? Conj(in[(i + 1) * step]) : T(0);
          result[i * step] = rest = d[i * step] + next * rest;
        }
        T before = T(1);
        for (int64_t i = 0; i < view.n; ++i) {
          result[i * step] = result[i * step] * before;
          before = before * Conj(in[i * step]);
        }
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterCumprod(OpRegistry* registry) {
  OpDef op("cumprod");
  op.Input("X").Output("Out").RequiredAttr("dim", AttrType::kInt);
  op.Infer(InferCumprodForward).Reference(BindCumprodForward);
  op.Grad(GradSpec{"cumprod_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cumprod_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.RequiredAttr("dim", AttrType::kInt);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCumprodGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
