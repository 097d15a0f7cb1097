// SPDX-License-Identifier: Apache-2.0
// X [N, C, ...] holds logarithms of probabilities, Label [N, ...] class
// numbers, Weight [C] (1 when absent) a factor per class.
//   l = -Weight[Label] * X[n, Label, ...]; 0 where Label is ignore_index
//   Total_weight = sum of Weight[Label] over labels that are not ignored
//   Out = l (reduction "none"), sum(l) ("sum"), sum(l) / Total_weight ("mean";
//   0 when nothing counts)
// X@GRAD[n, Label, ...] = -Weight[Label] * Out@GRAD (/ Total_weight), else 0
#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class Reduction { kNone, kSum, kMean };

struct NllLossProblem {
  AxisView view;
  Tensor *label, *weight;
  int64_t ignore_index;
  Reduction reduction;

  // Weight of a class.
  template <typename T>
  T WeightOf(int64_t label_value) const {
    return weight != nullptr ? weight->data<T>()[label_value] : T(1);
  }
};

absl::StatusOr<Reduction> ReadReduction(const OpDesc& op) {
  const auto how = op.Attr<std::string>("reduction");
  if (how == "none") return Reduction::kNone;
  if (how == "sum") return Reduction::kSum;
  if (how == "mean") return Reduction::kMean;
  return InvalidArgument("attr 'reduction' is '%s'; expected none, sum or mean",
                         how);
}

absl::StatusOr<NllLossProblem> ReadNllLossProblem(const BindContext& context,
                                                  const Tensor& x) {
  if (x.rank() < 2)
    return InvalidArgument("'X' has shape %s; expected [N, C, ...]",
                           ToString(x.shape()));
  NllLossProblem p;
  PD_ASSIGN_OR_RETURN(p.view, ViewAxis(x.shape(), 1));
  PD_ASSIGN_OR_RETURN(p.reduction, ReadReduction(context.op()));
  p.label = context.Input("Label");
  p.weight = context.Input("Weight");
  p.ignore_index = context.Attr<int64_t>("ignore_index");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", p.label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(context, "Label", p.label->dtype(),
                                    p.view.outer * p.view.inner));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(context, "Weight", x.dtype(), {p.view.n}));
  return p;
}

absl::StatusOr<Step> BindNllLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* total = context->Output("Total_weight");
  PD_ASSIGN_OR_RETURN(const NllLossProblem p, ReadNllLossProblem(*context, *x));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(
          CheckLabels("Label", *p.label, p.view.n, p.ignore_index));
      double sum = 0, weights = 0;
      for (int64_t i = 0; i < p.view.lines(); ++i) {
        const int64_t label = LabelAt(*p.label, i);
        T loss = T(0);
        if (label != p.ignore_index) {
          const T w = p.WeightOf<T>(label);
          loss = -w * x->data<T>()[p.view.Start(i) + label * p.view.inner];
          weights += w;
        }
        sum += loss;
        if (p.reduction == Reduction::kNone) out->data<T>()[i] = loss;
      }
      if (p.reduction == Reduction::kMean && weights != 0) sum /= weights;
      if (p.reduction != Reduction::kNone)
        out->data<T>()[0] = static_cast<T>(sum);
      if (total != nullptr) total->data<T>()[0] = static_cast<T>(weights);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindNllLossGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* total = context->Input("Total_weight");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const NllLossProblem p, ReadNllLossProblem(*context, *x));
  context->NoBuffer(x);
  const bool each = p.reduction == Reduction::kNone;
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(),
                                    each ? p.view.lines() : 1));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Total_weight", x->dtype(), 1));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(
          CheckLabels("Label", *p.label, p.view.n, p.ignore_index));
      T divisor = T(1);
      if (p.reduction == Reduction::kMean && total->data<T>()[0] != T(0))
        divisor = total->data<T>()[0];
      T* result = dx->data<T>();
      std::fill(result, result + dx->size(), T(0));
      for (int64_t i = 0; i < p.view.lines(); ++i) {
        const int64_t label = LabelAt(*p.label, i);
        if (label == p.ignore_index) continue;
        const T g = dout->data<T>()[each ? i : 0];
        result[p.view.Start(i) + label * p.view.inner] =
            -p.WeightOf<T>(label) * g / divisor;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferNllLoss(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& label = context->Input("Label");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label.dtype));
  if (x.shape.size() < 2 || label.shape.size() + 1 != x.shape.size())
    return InvalidArgument(
        "'X' has shape %s and 'Label' %s; expected [N, C, ...] and [N, ...]",
        ToString(x.shape), ToString(label.shape));
  PD_ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(context->op()));
  const bool none = reduction == Reduction::kNone;
  context->SetOutput("Out", none ? label.shape : Shape{}, x.dtype);
  context->SetOutput("Total_weight", Shape{}, x.dtype);
  return absl::OkStatus();
}

void AddNllLossAttrs(OpDef* def) {
  def->Attr("ignore_index", int64_t{-100});
  def->Attr("reduction", std::string("mean"));
}

}  // namespace

absl::Status RegisterNllLoss(OpRegistry* registry) {
  OpDef loss("nll_loss");
  loss.Input("X").Input("Label").OptionalInput("Weight");
  loss.Output("Out").Output("Total_weight");
  AddNllLossAttrs(&loss);
  loss.Infer(InferNllLoss).Reference(BindNllLoss);
  loss.Grad(GradSpec{"nll_loss_grad",
                     {"X", "Label", "Weight"},
                     {"Total_weight"},
                     {"Out"},
                     {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(loss)));

  OpDef grad("nll_loss_grad");
  grad.Input("X").Input("Label").OptionalInput("Weight");
  grad.Input("Total_weight").Input("Out@GRAD").Output("X@GRAD");
  AddNllLossAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindNllLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
