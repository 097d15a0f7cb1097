// SPDX-License-Identifier: Apache-2.0
// cross_entropy, cross_entropy2: of probabilities X along the last axis.
//   hard labels: Y = -log(X[Label]); 0 where Label is ignore_index
//                X@GRAD = -Y@GRAD / X at Label, else 0
//   soft labels (cross_entropy): Y = -sum(Label * log(X))
//                X@GRAD = -Y@GRAD * Label / X
// The logarithm of 0 counts as -1e20. cross_entropy2 leaves X[Label] in MatchX
// (0 where ignored) and X's shape, after a 0, in XShape: its gradient op
// cross_entropy_grad2 does not need X.
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

// A view of lines along the last axis and their labels.
struct CrossEntropyProblem {
  AxisView view;
  Tensor* label;
  bool soft = false;
  int64_t ignore_index;

  absl::Status CheckLabel() const {
    return soft ? absl::OkStatus()
                : CheckLabels("Label", *label, view.n, ignore_index);
  }
};

absl::StatusOr<CrossEntropyProblem> ReadCrossEntropyProblem(
    const BindContext& context, const Shape& x, DType dtype) {
  CrossEntropyProblem p;
  if (x.empty()) return InvalidArgument("'X' is a scalar; expected classes");
  PD_ASSIGN_OR_RETURN(p.view, ViewAxis(x, -1));
  p.label = context.Input("Label");
  // cross_entropy2 knows class numbers alone.
  p.soft = context.op().AttrOr("soft_label", false);
  p.ignore_index = context.Attr<int32_t>("ignore_index");
  if (!p.soft) PD_RETURN_IF_ERROR(CheckLabelType("Label", p.label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(context, "Label",
                                    p.soft ? dtype : p.label->dtype(),
                                    p.soft ? NumElements(x) : p.view.outer));
  return p;
}

absl::StatusOr<Step> BindCrossEntropyForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Output("Y");
  Tensor* match = context->op().type == "cross_entropy2"
                      ? context->Output("MatchX")
                      : nullptr;
  PD_ASSIGN_OR_RETURN(
      const CrossEntropyProblem p,
      ReadCrossEntropyProblem(*context, x->shape(), x->dtype()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(p.CheckLabel());
      ForEachLine(p.view, [&](int64_t line, int64_t start) {
        const T* in = x->data<T>() + start;
        T loss = T(0), found = T(0);
        if (p.soft) {
          const T* label = p.label->data<T>() + start;
          for (int64_t i = 0; i < p.view.n; ++i)
            loss -= label[i] * LogProbability(in[i]);
        } else if (const int64_t label = LabelAt(*p.label, line);
                   label != p.ignore_index) {
          found = in[label];
          loss = -LogProbability(found);
        }
        y->data<T>()[line] = loss;
        if (match != nullptr) match->data<T>()[line] = found;
      });
      return absl::OkStatus();
    });
  });
}

// `probability(line, at)` is X at the label of a line.
template <typename T, typename Probability>
void BackwardHard(const CrossEntropyProblem& p, const T* dy, T* dx,
                  const Probability& probability) {
  ForEachLine(p.view, [&](int64_t line, int64_t start) {
    std::fill(dx + start, dx + start + p.view.n, T(0));
    const int64_t label = LabelAt(*p.label, line);
    if (label != p.ignore_index)
      dx[start + label] = -dy[line] / probability(line, start + label);
  });
}

absl::StatusOr<Step> BindCrossEntropyGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(
      const CrossEntropyProblem p,
      ReadCrossEntropyProblem(*context, x->shape(), x->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Y@GRAD", x->dtype(), p.view.outer));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(p.CheckLabel());
      const T* in = x->data<T>();
      const T* g = dy->data<T>();
      T* result = dx->data<T>();
      if (!p.soft) {
        BackwardHard(p, g, result, [&](int64_t, int64_t at) { return in[at]; });
        return absl::OkStatus();
      }
      const T* label = p.label->data<T>();
      ForEachLine(p.view, [&](int64_t line, int64_t start) {
        for (int64_t i = start; i < start + p.view.n; ++i)
          result[i] = -g[line] * label[i] / in[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGrad2(BindContext* context) {
  Tensor* match = context->Input("MatchX");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("XShape"));
  const DType dtype = dx->dtype();
  PD_ASSIGN_OR_RETURN(const CrossEntropyProblem p,
                      ReadCrossEntropyProblem(*context, dx->shape(), dtype));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y@GRAD", dtype, p.view.outer));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "MatchX", dtype, p.view.outer));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(p.CheckLabel());
      const T* found = match->data<T>();
      BackwardHard(p, dy->data<T>(), dx->data<T>(),
                   [&](int64_t line, int64_t) { return found[line]; });
      return absl::OkStatus();
    });
  });
}

absl::Status InferCrossEntropyForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.empty())
    return InvalidArgument("'X' is a scalar; expected classes");
  TensorMeta y = x;
  y.value = nullptr;
  y.shape.back() = 1;
  context->SetOutput("Y", y);
  if (context->op().type != "cross_entropy2") return absl::OkStatus();
  context->SetOutput("MatchX", y);
  Shape shape = x.shape;
  shape.insert(shape.begin(), 0);
  context->SetOutput("XShape", std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::Status InferGrad2(InferContext* context) {
  const TensorMeta& shape = context->Input("XShape");
  if (shape.shape.empty())
    return InvalidArgument("'XShape' has shape []; expected [0, ...]");
  context->SetOutput("X@GRAD",
                     Shape(shape.shape.begin() + 1, shape.shape.end()),
                     context->Input("Y@GRAD").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterCrossEntropy(OpRegistry* registry) {
  OpDef op("cross_entropy");
  op.Input("X").Input("Label").Output("Y");
  op.Attr("soft_label", false).Attr("ignore_index", int32_t{-100});
  op.Infer(InferCrossEntropyForward).Reference(BindCrossEntropyForward);
  op.Grad(GradSpec{"cross_entropy_grad", {"X", "Label"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cross_entropy_grad");
  grad.Input("X").Input("Label").Input("Y@GRAD").Output("X@GRAD");
  grad.Attr("soft_label", false).Attr("ignore_index", int32_t{-100});
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCrossEntropyGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef op2("cross_entropy2");
  op2.Input("X").Input("Label").Output("Y").Output("MatchX");
  op2.IntermediateOutput("XShape").Attr("ignore_index", int32_t{-100});
  op2.Infer(InferCrossEntropyForward).Reference(BindCrossEntropyForward);
  op2.Grad(GradSpec{
      "cross_entropy_grad2", {"Label"}, {"MatchX", "XShape"}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op2)));

  OpDef grad2("cross_entropy_grad2");
  grad2.Input("Label").Input("MatchX").Input("XShape").Input("Y@GRAD");
  grad2.Output("X@GRAD").Attr("ignore_index", int32_t{-100});
  grad2.Infer(InferGrad2).NoGrad().Reference(BindGrad2);
  return registry->Add(std::move(grad2));
}

}  // namespace pd
