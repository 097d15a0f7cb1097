// SPDX-License-Identifier: Apache-2.0
// Losses of pairs of scores. P is how likely the left one ranks higher
// (RankNet), d = Left - Right:
//   rank_loss: Out = log(1 + exp(d)) - Label * d
//     Left@GRAD = Out@GRAD * (sigmoid(d) - Label) = -Right@GRAD
// The margin form, Label in {1, -1}, d = X1 - X2:
//   margin_rank_loss: Out = max(0, margin - Label * d), Activated = Out > 0
//     X1@GRAD = -Out@GRAD * Label where Activated, else 0; X2@GRAD = -X1@GRAD
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kRankLossGrain = 4096;

struct RankNet {
  static constexpr const char *kType = "rank_loss", *kLeft = "Left",
                              *kRight = "Right";
  static constexpr bool kMargin = false;
  template <typename T>
  static T Loss(T d, T label, T) {
    // log(1 + exp(d)) without overflow.
    return std::max(d, T(0)) + std::log1p(std::exp(-std::abs(d))) - label * d;
  }
};

struct Margin {
  static constexpr const char *kType = "margin_rank_loss", *kLeft = "X1",
                              *kRight = "X2";
  static constexpr bool kMargin = true;
  template <typename T>
  static T Loss(T d, T label, T margin) {
    return std::max(margin - label * d, T(0));
  }
};

template <typename Rule>
absl::Status CheckSizes(const BindContext& context, DType dtype, int64_t n) {
  if (!Rule::kMargin) {
    PD_RETURN_IF_ERROR(ExpectElements(context, Rule::kLeft, dtype, n));
    PD_RETURN_IF_ERROR(ExpectElements(context, Rule::kRight, dtype, n));
  }
  return ExpectElements(context, "Label", dtype, n);
}

template <typename Rule>
absl::StatusOr<Step> BindRankLoss(BindContext* context) {
  Tensor* label = context->Input("Label");
  Tensor* left = context->Input(Rule::kLeft);
  Tensor* right = context->Input(Rule::kRight);
  Tensor* out = context->Output("Out");
  Tensor* activated = Rule::kMargin ? context->Output("Activated") : nullptr;
  const float margin = context->op().template AttrOr<float>("margin", 0);
  const DType dtype = label->dtype();
  const int64_t n = label->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, Rule::kLeft, dtype, n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, Rule::kRight, dtype, n));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *y = label->data<T>(), *a = left->data<T>();
      const T* b = right->data<T>();
      T* loss = out->data<T>();
      T* active = activated != nullptr ? activated->data<T>() : nullptr;
      ParallelFor(n, kRankLossGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          loss[i] = Rule::Loss(a[i] - b[i], y[i], static_cast<T>(margin));
          if (active != nullptr) active[i] = loss[i] > T(0) ? T(1) : T(0);
        }
      });
      return absl::OkStatus();
    });
  });
}

template <typename Rule>
absl::StatusOr<Step> BindRankLossGrad(BindContext* context) {
  Tensor* label = context->Input("Label");
  Tensor* left = context->Input(Rule::kMargin ? "Activated" : Rule::kLeft);
  Tensor* right = Rule::kMargin ? left : context->Input(Rule::kRight);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dleft = context->Output(GradName(Rule::kLeft));
  Tensor* dright = context->Output(GradName(Rule::kRight));
  const DType dtype = label->dtype();
  const int64_t n = label->size();
  PD_RETURN_IF_ERROR(CheckSizes<Rule>(*context, dtype, n));
  if (Rule::kMargin)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Activated", dtype, n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", dtype, n));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *y = label->data<T>(), *g = dout->data<T>();
      const T *a = left->data<T>(), *b = right->data<T>();
      for (int64_t i = 0; i < n; ++i) {
        const T slope = Rule::kMargin
                            ? -y[i] * a[i]
                            : T(1) / (T(1) + std::exp(b[i] - a[i])) - y[i];
        if (dleft != nullptr) dleft->data<T>()[i] = g[i] * slope;
        if (dright != nullptr) dright->data<T>()[i] = -g[i] * slope;
      }
      return absl::OkStatus();
    });
  });
}

template <typename Rule>
absl::Status InferRankLoss(InferContext* context) {
  const Shape& label = context->Input("Label").shape;
  for (const char* slot : {Rule::kLeft, Rule::kRight})
    if (context->Input(slot).shape.size() != label.size())
      return InvalidArgument("'%s' has shape %s; 'Label' has %s", slot,
                             ToString(context->Input(slot).shape),
                             ToString(label));
  context->Share(Rule::kMargin ? "Label" : Rule::kLeft, "Out");
  if (Rule::kMargin) context->Share("Label", "Activated");
  return absl::OkStatus();
}

// margin_rank_loss's gradient op has neither X1 nor X2.
template <typename Rule>
absl::Status InferGrad(InferContext* context) {
  context->Share(Rule::kMargin ? "Label" : Rule::kLeft, GradName(Rule::kLeft));
  context->Share(Rule::kMargin ? "Label" : Rule::kRight,
                 GradName(Rule::kRight));
  return absl::OkStatus();
}

template <typename Rule>
absl::Status AddRankLoss(OpRegistry* registry) {
  const std::string grad_type = std::string(Rule::kType) + "_grad";
  OpDef op(Rule::kType);
  op.Input("Label").Input(Rule::kLeft).Input(Rule::kRight).Output("Out");
  GradSpec spec{grad_type, {"Label"}, {}, {"Out"}, {Rule::kLeft, Rule::kRight}};
  OpDef grad(grad_type);
  grad.Input("Label").Input("Out@GRAD");
  if (Rule::kMargin) {
    op.IntermediateOutput("Activated").Attr("margin", 0.0f);
    spec.outputs = {"Activated"};
    grad.Input("Activated").Attr("margin", 0.0f);
  } else {
    spec.inputs = {"Label", Rule::kLeft, Rule::kRight};
    grad.Input(Rule::kLeft).Input(Rule::kRight);
  }
  op.Infer(InferRankLoss<Rule>)
      .Reference(BindRankLoss<Rule>)
      .Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  grad.OptionalOutput(GradName(Rule::kLeft));
  grad.OptionalOutput(GradName(Rule::kRight));
  grad.Infer(InferGrad<Rule>).NoGrad().Reference(BindRankLossGrad<Rule>);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterRankLoss(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddRankLoss<RankNet>(registry));
  return AddRankLoss<Margin>(registry);
}

}  // namespace pd
