// SPDX-License-Identifier: Apache-2.0
// Softmax = softmax(Logits) along `axis`; Loss has extent 1 there.
//   hard labels: Loss = -log(Softmax[Label])
//   soft labels: Loss = -sum(Label * log(Softmax))
// Logits@GRAD, per line, with g = Loss@GRAD:
//   hard: g * (Softmax - onehot(Label)), 0 where Label is ignore_index
//   soft: g * (Softmax * sum(Label) - Label), PaddlePaddle: sum(Label) = 1
// use_softmax = false: Logits are probabilities already, Softmax is their copy,
//   and the gradients are g * -1 / p at the label, or g * -Label / p.
// log(Softmax) is computed as x - max - log(sum), with PaddlePaddle's floor of
// -64 on x - max: a loss of finite logits is 64 + log(classes) at most.
// A label outside [0, classes) that is not ignore_index stops the run.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/loss/log_probability.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Attributes and tensors of either op, resolved.
struct SoftmaxCrossEntropyProblem {
  AxisView view;
  bool soft_label, use_softmax;
  int64_t ignore_index;
  Tensor* label;

  absl::Status CheckLabel() const {
    return soft_label ? absl::OkStatus()
                      : CheckLabels("Label", *label, view.n, ignore_index);
  }
};

absl::StatusOr<SoftmaxCrossEntropyProblem> ReadSoftmaxCrossEntropyProblem(
    BindContext* context, const Tensor& x) {
  SoftmaxCrossEntropyProblem p;
  PD_ASSIGN_OR_RETURN(p.view,
                      ViewAxis(x.shape(), context->Attr<int32_t>("axis")));
  p.soft_label = context->Attr<bool>("soft_label");
  p.use_softmax = context->Attr<bool>("use_softmax");
  p.ignore_index = context->Attr<int32_t>("ignore_index");
  p.label = context->Input("Label");
  const int64_t labels = p.soft_label ? x.size() : p.view.lines();
  if (!p.soft_label)
    PD_RETURN_IF_ERROR(CheckLabelType("Label", p.label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(
      *context, "Label", p.soft_label ? x.dtype() : p.label->dtype(), labels));
  return p;
}

// Loss of the line at `start`; fills its softmax.
template <typename T>
T ForwardLine(const SoftmaxCrossEntropyProblem& p, const T* x, const T* soft,
              int64_t label, int64_t start, T* softmax) {
  const int64_t step = p.view.inner;
  const int64_t end = start + p.view.n * step;
  T max = T(0), log_sum = T(0);
  if (p.use_softmax) {
    max = x[start];
    for (int64_t i = start; i < end; i += step) max = std::max(max, x[i]);
    T sum = T(0);
    for (int64_t i = start; i < end; i += step)
      sum += softmax[i] = std::exp(x[i] - max);
    for (int64_t i = start; i < end; i += step) softmax[i] /= sum;
    log_sum = std::log(sum);
  } else {
    for (int64_t i = start; i < end; i += step) softmax[i] = x[i];
  }
  const auto log_at = [&](int64_t i) {
    return p.use_softmax ? std::max(x[i] - max, T(-64)) - log_sum
                         : LogProbability(x[i]);
  };
  if (!p.soft_label)
    return label == p.ignore_index ? T(0) : -log_at(start + label * step);
  T loss = T(0);
  for (int64_t i = start; i < end; i += step) loss -= soft[i] * log_at(i);
  return loss;
}

template <typename T>
void BackwardLine(const SoftmaxCrossEntropyProblem& p, const T* softmax,
                  const T* soft, int64_t label, int64_t start, T g, T* dx) {
  const int64_t step = p.view.inner;
  const int64_t end = start + p.view.n * step;
  if (p.soft_label) {
    for (int64_t i = start; i < end; i += step)
      dx[i] = p.use_softmax ? g * (softmax[i] - soft[i])
                            : -g * soft[i] / softmax[i];
    return;
  }
  const int64_t at = start + label * step;
  if (label == p.ignore_index) {
    for (int64_t i = start; i < end; i += step) dx[i] = T(0);
  } else if (p.use_softmax) {
    for (int64_t i = start; i < end; i += step) dx[i] = g * softmax[i];
    dx[at] -= g;
  } else {
    const T at_label = -g / softmax[at];
    for (int64_t i = start; i < end; i += step) dx[i] = T(0);
    dx[at] = at_label;
  }
}

absl::StatusOr<Step> BindSoftmaxCrossEntropyForward(BindContext* context) {
  Tensor* logits = context->Input("Logits");
  Tensor* softmax = context->Output("Softmax");
  Tensor* loss = context->Output("Loss");
  PD_ASSIGN_OR_RETURN(const SoftmaxCrossEntropyProblem p,
                      ReadSoftmaxCrossEntropyProblem(context, *logits));
  return DispatchFloat(logits->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(p.CheckLabel());
      ForEachLine(p.view, [&](int64_t line, int64_t start) {
        loss->data<T>()[line] =
            ForwardLine<T>(p, logits->data<T>(), p.label->data<T>(),
                           p.soft_label ? 0 : LabelAt(*p.label, line), start,
                           softmax->data<T>());
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindBackward(BindContext* context) {
  Tensor* softmax = context->Input("Softmax");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dlogits = context->Output("Logits@GRAD");
  context->MayShare(softmax, dlogits);
  PD_ASSIGN_OR_RETURN(const SoftmaxCrossEntropyProblem p,
                      ReadSoftmaxCrossEntropyProblem(context, *softmax));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", softmax->dtype(), p.view.lines()));
  return DispatchFloat(softmax->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(p.CheckLabel());
      ForEachLine(p.view, [&](int64_t line, int64_t start) {
        BackwardLine<T>(p, softmax->data<T>(), p.label->data<T>(),
                        p.soft_label ? 0 : LabelAt(*p.label, line), start,
                        dloss->data<T>()[line], dlogits->data<T>());
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSoftmaxCrossEntropyForward(InferContext* context) {
  const TensorMeta& logits = context->Input("Logits");
  const TensorMeta& label = context->Input("Label");
  if (logits.shape.empty())
    return InvalidArgument("'Logits' is a scalar; expected rank 1 or more");
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), logits.shape.size()));
  const bool soft = context->Attr<bool>("soft_label");
  if (soft && label.dtype != logits.dtype)
    return InvalidArgument("'Label' is %s and soft; 'Logits' is %s",
                           Name(label.dtype), Name(logits.dtype));
  if (!soft) PD_RETURN_IF_ERROR(CheckLabelType("Label", label.dtype));
  Shape loss = logits.shape;
  loss[static_cast<size_t>(axis)] = 1;
  const Shape& expected = soft ? logits.shape : loss;
  bool fits = label.shape.size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits =
        label.shape[i] == expected[i] || label.shape[i] < 0 || expected[i] < 0;
  if (!fits)
    return InvalidArgument(
        "'Label' has shape %s; 'Logits' of shape %s expects %s",
        ToString(label.shape), ToString(logits.shape), ToString(expected));
  context->Share("Logits", "Softmax");
  context->SetOutput("Loss", loss, logits.dtype);
  return absl::OkStatus();
}

absl::Status InferBackward(InferContext* context) {
  context->Share("Softmax", "Logits@GRAD");
  return absl::OkStatus();
}

void AddSoftmaxCrossEntropyAttrs(OpDef* def) {
  def->Attr("soft_label", false)
      .Attr("use_softmax", true)
      .Attr("numeric_stable_mode", true)
      .Attr("ignore_index", int32_t{-100})
      .Attr("axis", int32_t{-1});
}

}  // namespace

absl::Status RegisterSoftmaxWithCrossEntropy(OpRegistry* registry) {
  OpDef op("softmax_with_cross_entropy");
  op.Input("Logits").Input("Label").Output("Softmax").Output("Loss");
  AddSoftmaxCrossEntropyAttrs(&op);
  op.Infer(InferSoftmaxCrossEntropyForward)
      .Reference(BindSoftmaxCrossEntropyForward);
  op.Grad(GradSpec{"softmax_with_cross_entropy_grad",
                   {"Label"},
                   {"Softmax"},
                   {"Loss"},
                   {"Logits"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("softmax_with_cross_entropy_grad");
  grad.Input("Label").Input("Softmax").Input("Loss@GRAD");
  grad.Output("Logits@GRAD");
  AddSoftmaxCrossEntropyAttrs(&grad);
  grad.Infer(InferBackward).NoGrad().Reference(BindBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
