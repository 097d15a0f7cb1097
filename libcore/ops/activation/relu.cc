// SPDX-License-Identifier: Apache-2.0
// Out = max(X, 0)
// X@GRAD = Out@GRAD where Out > 0, else 0
// NaN stays NaN. The gradient reads Out, so X may be overwritten. The second
// gradient is the same function: relu_grad is linear in Out@GRAD.
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/unary_curve.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kReluGrain = 16384;  // elements per thread at least

absl::StatusOr<Step> BindRelu(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                       int16_t, int8_t, uint8_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out, n = x->size()](const RunContext&) {
          const T* in = x->data<T>();
          T* result = out->data<T>();
          ParallelFor(n, kReluGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              result[i] = in[i] < T(0) ? T(0) : in[i];
          });
          return absl::OkStatus();
        });
      });
}

// `to` = `from` where Out is above 0.
absl::StatusOr<Step> BindMask(BindContext* context, const char* from,
                              const char* to) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input(from);
  Tensor* dx = context->Output(to);
  PD_RETURN_IF_ERROR(ExpectElements(*context, from, out->dtype(), out->size()));
  context->MayShare(dout, dx);
  return DispatchTypes<float, double, Float16, BFloat16>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([out, dout, dx, n = out->size()](const RunContext&) {
          const T* y = out->data<T>();
          const T* dy = dout->data<T>();
          T* result = dx->data<T>();
          ParallelFor(n, kReluGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              result[i] = y[i] > T(0) ? dy[i] : T(0);
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindReluGrad(BindContext* context) {
  return BindMask(context, "Out@GRAD", "X@GRAD");
}
absl::StatusOr<Step> BindReluGradGrad(BindContext* context) {
  return BindMask(context, "grad_x@GRAD", "grad_out@GRAD");
}

absl::Status InferReluGrad(InferContext* context) {
  context->Share("Out", "X@GRAD");
  context->Share("Out", "grad_out@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OpDesc>> ReluGradGrad(const GradRequest& request) {
  const OpDesc& grad = request.op;
  std::vector<OpDesc> ops;
  if (!request.needs_grad(grad.In("Out@GRAD"))) return ops;
  OpDesc op;
  op.type = "relu_grad_grad";
  op.SetInput("Out", {grad.In("Out")});
  op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
  op.SetOutput("grad_out@GRAD", {GradName(grad.In("Out@GRAD"))});
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterRelu(OpRegistry* registry) {
  OpDef relu("relu");
  relu.Input("X").Output("Out").Infer(InferUnary).Reference(BindRelu);
  relu.Grad(GradSpec{"relu_grad", {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(relu)));

  OpDef grad("relu_grad");
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferReluGrad).Grad(GradMaker(ReluGradGrad));
  grad.Reference(BindReluGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second("relu_grad_grad");
  second.Input("Out").Input("grad_x@GRAD").Output("grad_out@GRAD");
  second.Infer(InferReluGrad).Grad(LinearThird("relu_grad", "Out", "Out"));
  second.Reference(BindReluGradGrad);
  return registry->Add(std::move(second));
}

}  // namespace pd
