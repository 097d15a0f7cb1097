// SPDX-License-Identifier: Apache-2.0
// Out = max(X, 0)
// X@GRAD = Out@GRAD where Out > 0, else 0
// NaN stays NaN. The gradient reads Out, so X may be overwritten.
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 16384;  // elements per thread at least

absl::StatusOr<Step> BindRelu(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return DispatchNumeric(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, n = x->size()](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = in[i] < T(0) ? T(0) : in[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindReluGrad(BindContext* context) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->MayShare(dout, dx);
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([out, dout, dx, n = out->size()](const RunContext&) {
      const T* y = out->data<T>();
      const T* dy = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = y[i] > T(0) ? dy[i] : T(0);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferReluGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterRelu(OpRegistry* registry) {
  OpDef relu("relu");
  relu.Input("X").Output("Out").Infer(InferUnary).Reference(BindRelu);
  relu.Grad(GradSpec{"relu_grad", {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(relu)));

  OpDef grad("relu_grad");
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferReluGrad).NoGrad().Reference(BindReluGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
