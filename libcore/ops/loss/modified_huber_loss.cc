// SPDX-License-Identifier: Apache-2.0
// Huber's loss for labels Y in {0, 1}, with s = 2 * Y - 1 and the margin
// IntermediateVal = v = X * s:
//   Out = -4 * v where v < -1, (1 - v)^2 where v < 1, else 0
//   X@GRAD = Out@GRAD * s * (-4, -2 * (1 - v), 0)
#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindModifiedHuberLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* margin = context->Output("IntermediateVal");
  Tensor* out = context->Output("Out");
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y", x->dtype(), n));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < n; ++i) {
        const T label = y->data<T>()[i];
        const T v = x->data<T>()[i] * (T(2) * label - T(1));
        if (margin != nullptr) margin->data<T>()[i] = v;
        const T gap = std::max(T(1) - v, T(0));
        out->data<T>()[i] = v < T(-1) ? T(-4) * v : gap * gap;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindModifiedHuberLossGrad(BindContext* context) {
  Tensor* y = context->Input("Y");
  Tensor* margin = context->Input("IntermediateVal");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const int64_t n = margin->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y", margin->dtype(), n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", margin->dtype(), n));
  return DispatchFloat(margin->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < n; ++i) {
        const T v = margin->data<T>()[i];
        const T s = T(2) * y->data<T>()[i] - T(1);
        const T slope = v < T(-1) ? T(-4) : T(-2) * std::max(T(1) - v, T(0));
        dx->data<T>()[i] = dout->data<T>()[i] * s * slope;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferModifiedHuberLoss(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.size() != context->Input("Y").shape.size())
    return InvalidArgument("'X' has shape %s; 'Y' has %s", ToString(x.shape),
                           ToString(context->Input("Y").shape));
  context->Share("X", "Out");
  TensorMeta margin = x;
  margin.value = nullptr;
  margin.lod_level = 0;
  margin.lod = {};
  context->SetOutput("IntermediateVal", std::move(margin));
  return absl::OkStatus();
}

absl::Status InferModifiedHuberLossGrad(InferContext* context) {
  context->Share("IntermediateVal", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterModifiedHuberLoss(OpRegistry* registry) {
  OpDef op("modified_huber_loss");
  op.Input("X").Input("Y").IntermediateOutput("IntermediateVal").Output("Out");
  op.Infer(InferModifiedHuberLoss).Reference(BindModifiedHuberLoss);
  op.Grad(GradSpec{
      "modified_huber_loss_grad", {"Y"}, {"IntermediateVal"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("modified_huber_loss_grad");
  grad.OptionalInput("X").Input("Y").Input("IntermediateVal");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferModifiedHuberLossGrad).NoGrad();
  grad.Reference(BindModifiedHuberLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
