// SPDX-License-Identifier: Apache-2.0
// Out = max(X, 0) - X * Label + log(1 + exp(-|X|)) * f; 0 where Label is
//   ignore_index; f is pos_weight, 1 where that is absent
// X@GRAD = Out@GRAD * (sigmoid(X) * f - Label)
// normalize divides both by the number of labels that are not ignored.
// pos_weight (PaddlePaddle 2.5 and later) is here what its CPU kernel computes:
// neither the usual weighted loss nor, with f other than 1, its derivative.
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kSigmoidCrossEntropyGrain = 4096;

struct SigmoidCrossEntropyProblem {
  Tensor *x, *label, *weight;
  int64_t n;
  bool normalize;
  double ignore_index;

  template <typename T>
  bool Ignores(T label_value) const {
    return std::abs(label_value - ignore_index) < 1e-5;
  }
  // The divisor of the results.
  template <typename T>
  T Divisor() const {
    if (!normalize) return T(1);
    int64_t count = 0;
    const T* l = label->data<T>();
    for (int64_t i = 0; i < n; ++i) count += !Ignores(l[i]);
    return std::max(static_cast<T>(count), T(1e-5));
  }
};

absl::StatusOr<SigmoidCrossEntropyProblem> ReadSigmoidCrossEntropyProblem(
    const BindContext& context) {
  SigmoidCrossEntropyProblem p;
  p.x = context.Input("X");
  p.label = context.Input("Label");
  p.weight = context.Input("pos_weight");
  p.n = p.x->size();
  p.normalize = context.Attr<bool>("normalize");
  p.ignore_index = context.Attr<int32_t>("ignore_index");
  PD_RETURN_IF_ERROR(ExpectElements(context, "Label", p.x->dtype(), p.n));
  if (p.weight != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(context, "pos_weight", p.x->dtype(), p.n));
  return p;
}

// Calls result(i, x, label, f) for each element; ignored ones get 0.
template <typename T, typename Result>
void ForEach(const SigmoidCrossEntropyProblem& p, T* out,
             const Result& result) {
  const T* x = p.x->data<T>();
  const T* label = p.label->data<T>();
  const T* weight = p.weight != nullptr ? p.weight->data<T>() : nullptr;
  const T divisor = p.Divisor<T>();
  ParallelFor(p.n, kSigmoidCrossEntropyGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T f = weight != nullptr ? weight[i] : T(1);
      out[i] =
          p.Ignores(label[i]) ? T(0) : result(i, x[i], label[i], f) / divisor;
    }
  });
}

absl::StatusOr<Step> BindSigmoidCrossEntropyForward(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const SigmoidCrossEntropyProblem p,
                      ReadSigmoidCrossEntropyProblem(*context));
  context->MayShare(p.x, out);
  return DispatchFloat(p.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEach(p, out->data<T>(), [](int64_t, T x, T label, T f) {
        return std::max(x, T(0)) - x * label +
               std::log1p(std::exp(-std::abs(x))) * f;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSigmoidCrossEntropyGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const SigmoidCrossEntropyProblem p,
                      ReadSigmoidCrossEntropyProblem(*context));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", p.x->dtype(), p.n));
  context->MayShare(dout, dx);
  return DispatchFloat(p.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* g = dout->data<T>();
      ForEach(p, dx->data<T>(), [g](int64_t i, T x, T label, T f) {
        return g[i] * (f / (T(1) + std::exp(-x)) - label);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSigmoidCrossEntropyForward(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const Shape& label = context->Input("Label").shape;
  if (x.size() != label.size())
    return InvalidArgument("'X' has shape %s; 'Label' has %s", ToString(x),
                           ToString(label));
  return InferUnary(context);
}

void AddSigmoidCrossEntropyAttrs(OpDef* def) {
  def->Attr("normalize", false).Attr("ignore_index", int32_t{-100});
}

}  // namespace

absl::Status RegisterSigmoidCrossEntropyWithLogits(OpRegistry* registry) {
  OpDef op("sigmoid_cross_entropy_with_logits");
  op.Input("X").Input("Label").OptionalInput("pos_weight").Output("Out");
  AddSigmoidCrossEntropyAttrs(&op);
  op.Infer(InferSigmoidCrossEntropyForward)
      .Reference(BindSigmoidCrossEntropyForward);
  op.Grad(GradSpec{"sigmoid_cross_entropy_with_logits_grad",
                   {"X", "Label", "pos_weight"},
                   {},
                   {"Out"},
                   {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sigmoid_cross_entropy_with_logits_grad");
  grad.Input("X").Input("Label").OptionalInput("pos_weight");
  grad.Input("Out@GRAD").Output("X@GRAD");
  AddSigmoidCrossEntropyAttrs(&grad);
  grad.Infer(InferGradLikeInput)
      .NoGrad()
      .Reference(BindSigmoidCrossEntropyGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
