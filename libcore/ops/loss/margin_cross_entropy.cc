// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy with a margin on the angle (ArcFace, Deng et al. 2019),
// for one process. Logits [N, C] are cosines; the label's becomes
//   cos(margin1 * acos(x) + margin2) - margin3
// and all are multiplied by `scale` before the softmax:
//   Loss [N, 1] = -log(Softmax[n, Label[n]])
//   Logits@GRAD = scale * Loss@GRAD * (Softmax - 1 at the label), at the label
//   times margin1 * sin(margin1 * acos(x) + margin2) / sqrt(1 - x^2 + 1e-5)
//   where there is a margin1 or margin2
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Margins {
  double margin1, margin2, margin3, scale;

  explicit Margins(const BindContext& context)
      : margin1(context.Attr<float>("margin1")),
        margin2(context.Attr<float>("margin2")),
        margin3(context.Attr<float>("margin3")),
        scale(context.Attr<float>("scale")) {}

  bool Turns() const {
    return std::abs(margin1 - 1.0) > 1e-8 || std::abs(margin2) > 1e-8;
  }
  double Angle(double x) const { return margin1 * std::acos(x) + margin2; }
  double Moved(double x) const {
    return (Turns() ? std::cos(Angle(x)) : x) - margin3;
  }
  double Slope(double x) const {
    return Turns()
               ? margin1 * std::sin(Angle(x)) / std::sqrt(1.0 - x * x + 1e-5)
               : 1.0;
  }
};

absl::StatusOr<AxisView> ReadMarginClasses(const BindContext& context) {
  const Tensor* x = context.Input("Logits");
  const Tensor* label = context.Input("Label");
  if (x->rank() != 2)
    return InvalidArgument("'Logits' has shape %s; expected [N, classes]",
                           ToString(x->shape()));
  if (context.Attr<int32_t>("nranks") != 1)
    return Unimplemented("attr 'nranks' is %d; only one process is supported",
                         context.Attr<int32_t>("nranks"));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), -1));
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(context, "Label", label->dtype(), view.outer));
  return view;
}

absl::StatusOr<Step> BindMarginLoss(BindContext* context) {
  Tensor* x = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* softmax = context->Output("Softmax");
  Tensor* loss = context->Output("Loss");
  const Margins margins(*context);
  PD_ASSIGN_OR_RETURN(const AxisView view, ReadMarginClasses(*context));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      // Class 0 as `ignored`: none is.
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, view.n, 0));
      ForEachLine(view, [&](int64_t line, int64_t start) {
        const T* in = x->data<T>() + start;
        T* out = softmax->data<T>() + start;
        const int64_t l = LabelAt(*label, line);
        for (int64_t i = 0; i < view.n; ++i)
          out[i] = static_cast<T>(margins.scale *
                                  (i == l ? margins.Moved(in[i]) : in[i]));
        const T max = *std::max_element(out, out + view.n);
        T sum = T(0);
        const T at_label = out[l] - max;
        for (int64_t i = 0; i < view.n; ++i)
          sum += out[i] = std::exp(out[i] - max);
        for (int64_t i = 0; i < view.n; ++i) out[i] /= sum;
        loss->data<T>()[line] = std::log(sum) - at_label;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMarginLossGrad(BindContext* context) {
  Tensor* x = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* softmax = context->Input("Softmax");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("Logits@GRAD");
  const Margins margins(*context);
  PD_ASSIGN_OR_RETURN(const AxisView view, ReadMarginClasses(*context));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Softmax", x->dtype(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", x->dtype(), view.outer));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, view.n, 0));
      ForEachLine(view, [&](int64_t line, int64_t start) {
        const T* p = softmax->data<T>() + start;
        T* out = dx->data<T>() + start;
        const T g = dloss->data<T>()[line] * static_cast<T>(margins.scale);
        const int64_t l = LabelAt(*label, line);
        for (int64_t i = 0; i < view.n; ++i) out[i] = g * p[i];
        out[l] = g * (p[l] - T(1)) *
                 static_cast<T>(margins.Slope(x->data<T>()[start + l]));
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferMarginLoss(InferContext* context) {
  const TensorMeta& x = context->Input("Logits");
  if (x.shape.size() != 2)
    return InvalidArgument("'Logits' has shape %s; expected [N, classes]",
                           ToString(x.shape));
  context->SetOutput("Softmax", x.shape, x.dtype);
  context->SetOutput("Loss", {x.shape[0], 1}, x.dtype);
  return absl::OkStatus();
}

void AddMarginArguments(OpDef* op) {
  op->Input("Logits").Input("Label").Attr("nranks", int32_t{1});
  op->Attr("margin1", 1.0f).Attr("margin2", 0.5f).Attr("margin3", 0.0f);
  op->Attr("scale", 64.0f);
}

}  // namespace

absl::Status RegisterMarginCrossEntropy(OpRegistry* registry) {
  OpDef op("margin_cross_entropy");
  AddMarginArguments(&op);
  op.Output("Softmax")
      .Output("Loss")
      .Infer(InferMarginLoss)
      .Reference(BindMarginLoss);
  op.Grad(GradSpec{"margin_cross_entropy_grad",
                   {"Logits", "Label"},
                   {"Softmax"},
                   {"Loss"},
                   {"Logits"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("margin_cross_entropy_grad");
  AddMarginArguments(&grad);
  grad.Input("Softmax").Input("Loss@GRAD").Output("Logits@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMarginLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
