// SPDX-License-Identifier: Apache-2.0
// Out = (1 - epsilon) X + epsilon / C over C classes (the last extent), or
// + epsilon PriorDist[c].
// X@GRAD = (1 - epsilon) Out@GRAD
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindLabelSmooth(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* prior = context->Input("PriorDist");
  const float epsilon = context->Attr<float>("epsilon");
  const int64_t classes = x->rank() == 0 ? 1 : x->shape().back();
  if (prior != nullptr && prior->size() != classes)
    return InvalidArgument("PriorDist has shape %s; X has %d classes",
                           ToString(prior->shape()), classes);
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, prior, classes, e = static_cast<T>(epsilon),
                 n = x->size()](const RunContext&) {
      const T* in = x->data<T>();
      const T* shift = prior != nullptr ? prior->data<T>() : nullptr;
      T* result = out->data<T>();
      for (int64_t i = 0; i < n; ++i)
        result[i] = (T(1) - e) * in[i] +
                    e * (shift != nullptr ? shift[i % classes]
                                          : T(1) / static_cast<T>(classes));
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLabelSmoothGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const float epsilon = context->Attr<float>("epsilon");
  context->MayShare(dout, dx);
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([dout, dx, by = T(1) - static_cast<T>(epsilon),
                 n = dx->size()](const RunContext&) {
      for (int64_t i = 0; i < n; ++i)
        dx->data<T>()[i] = by * dout->data<T>()[i];
      return absl::OkStatus();
    });
  });
}

absl::Status InferLabelSmoothGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLabelSmooth(OpRegistry* registry) {
  OpDef op("label_smooth");
  op.Input("X").OptionalInput("PriorDist").Output("Out");
  op.Attr("epsilon", 0.0f).Infer(InferUnary).Reference(BindLabelSmooth);
  op.Grad(GradSpec{"label_smooth_grad", {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("label_smooth_grad");
  grad.Input("Out@GRAD").Output("X@GRAD").Attr("epsilon", 0.0f);
  grad.Infer(InferLabelSmoothGrad).NoGrad().Reference(BindLabelSmoothGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
