// SPDX-License-Identifier: Apache-2.0
// Bayesian personalized ranking (Hidasi et al., "Session-based recommendations
// with recurrent neural networks"): how far the score of the label lies above
// the others, along the last axis of n classes, l the label:
//   Y = 1 / (n - 1) * sum over j != l of log(1 + exp(X[j] - X[l]))
//   g = Y@GRAD / (n - 1) / (1 + exp(X[l] - X[j]))
//   X@GRAD[j] = g,  X@GRAD[l] = -sum of g
// An exp that overflows counts as 1e20, as in PaddlePaddle.
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

// CheckLabels's `ignored`: class 0 is one of the labels anyway.
constexpr int64_t kNoneIgnored = 0;

template <typename T>
T LogOnePlusExp(T v) {
  const T e = T(1) + std::exp(v);
  return std::log(std::isinf(e) ? T(1e20) : e);
}

absl::StatusOr<AxisView> ReadBprLossClasses(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* label = context.Input("Label");
  if (x->rank() == 0 || x->shape().back() < 2)
    return InvalidArgument("'X' has shape %s; expected 2 classes or more",
                           ToString(x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), -1));
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(context, "Label", label->dtype(), view.outer));
  return view;
}

absl::StatusOr<Step> BindBprLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* label = context->Input("Label");
  Tensor* y = context->Output("Y");
  PD_ASSIGN_OR_RETURN(const AxisView view, ReadBprLossClasses(*context));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, view.n, kNoneIgnored));
      ForEachLine(view, [&](int64_t line, int64_t start) {
        const T* in = x->data<T>() + start;
        const int64_t l = LabelAt(*label, line);
        T sum = T(0);
        for (int64_t j = 0; j < view.n; ++j)
          if (j != l) sum += LogOnePlusExp(in[j] - in[l]);
        y->data<T>()[line] = sum / static_cast<T>(view.n - 1);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindBprLossGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* label = context->Input("Label");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const AxisView view, ReadBprLossClasses(*context));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Y@GRAD", x->dtype(), view.outer));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, view.n, kNoneIgnored));
      ForEachLine(view, [&](int64_t line, int64_t start) {
        const T* in = x->data<T>() + start;
        T* out = dx->data<T>() + start;
        const int64_t l = LabelAt(*label, line);
        std::fill(out, out + view.n, T(0));
        const T scale = dy->data<T>()[line] / static_cast<T>(view.n - 1);
        for (int64_t j = 0; j < view.n; ++j) {
          if (j == l) continue;
          out[j] = scale / (T(1) + std::exp(in[l] - in[j]));
          out[l] -= out[j];
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferBprLoss(InferContext* context) {
  TensorMeta y = context->Input("X");
  if (y.shape.empty())
    return InvalidArgument("'X' is a scalar; expected classes");
  y.value = nullptr;
  y.shape.back() = 1;
  context->SetOutput("Y", std::move(y));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBprLoss(OpRegistry* registry) {
  OpDef op("bpr_loss");
  op.Input("X").Input("Label").Output("Y");
  op.Infer(InferBprLoss).Reference(BindBprLoss);
  op.Grad(GradSpec{"bpr_loss_grad", {"X", "Label"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("bpr_loss_grad");
  grad.Input("X").Input("Label").Input("Y@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindBprLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
