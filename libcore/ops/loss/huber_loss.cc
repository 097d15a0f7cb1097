// SPDX-License-Identifier: Apache-2.0
// Residual r = Y - X
// Out = r^2 / 2 where |r| <= delta, else delta * (|r| - delta / 2)
// Y@GRAD = Out@GRAD * clamp(r, -delta, delta); X@GRAD = -Y@GRAD
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kHuberLossGrain = 16384;

absl::StatusOr<Step> BindHuberLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  Tensor* residual = context->Output("Residual");
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y", x->dtype(), n));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const T delta = context->Attr<float>("delta");
    return Step([=](const RunContext&) {
      const T* a = x->data<T>();
      const T* b = y->data<T>();
      T* loss = out->data<T>();
      T* rest = residual != nullptr ? residual->data<T>() : nullptr;
      ParallelFor(n, kHuberLossGrain, [&](int64_t begin, int64_t end) {
      // Within delta both factors are made of r itself: r^2 / 2.
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          const T size = std::abs(b[i] - a[i]);
          const T near = size > delta ? delta : size;
          loss[i] = near * (size - T(0.5) * near);
        }
        if (rest == nullptr) return;
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) rest[i] = b[i] - a[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindHuberLossGrad(BindContext* context) {
  Tensor* residual = context->Input("Residual");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  const DType dtype = residual->dtype();
  const int64_t n = residual->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", dtype, n));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const T delta = context->Attr<float>("delta");
    return Step([=](const RunContext&) {
      const T* r = residual->data<T>();
      const T* g = dout->data<T>();
      T* to_x = dx != nullptr ? dx->data<T>() : nullptr;
      T* to_y = dy != nullptr ? dy->data<T>() : nullptr;
      ParallelFor(n, kHuberLossGrain, [&](int64_t begin, int64_t end) {
        const auto slope = [=](int64_t i) {
          return g[i] * std::min(std::max(r[i], -delta), delta);
        };
        if (to_x != nullptr)
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) to_x[i] = -slope(i);
        if (to_y != nullptr)
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) to_y[i] = slope(i);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferHuberLoss(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.shape.size() != y.shape.size())
    return InvalidArgument("'X' has shape %s; 'Y' has %s", ToString(x.shape),
                           ToString(y.shape));
  context->Share("X", "Residual");
  return InferUnary(context);
}

absl::Status InferHuberLossGrad(InferContext* context) {
  context->Share("Residual", "X@GRAD");
  context->Share("Residual", "Y@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterHuberLoss(OpRegistry* registry) {
  OpDef huber("huber_loss");
  huber.Input("X").Input("Y").Output("Out").IntermediateOutput("Residual");
  huber.RequiredAttr("delta", AttrType::kFloat);
  huber.Infer(InferHuberLoss).Reference(BindHuberLoss);
  huber.Grad(
      GradSpec{"huber_loss_grad", {}, {"Residual"}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(huber)));

  OpDef grad("huber_loss_grad");
  grad.Input("Residual").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.RequiredAttr("delta", AttrType::kFloat);
  grad.Infer(InferHuberLossGrad).NoGrad().Reference(BindHuberLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
