// SPDX-License-Identifier: Apache-2.0
// softmax_with_cross_entropy with hard labels over the last axis, and its
// gradient.
#include <algorithm>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/row_softmax.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"

namespace pd {
namespace cpu {
namespace {

struct CrossEntropyProblem {
  int64_t rows = 0, columns = 0, ignored = 0;
  Tensor* label = nullptr;
};

absl::StatusOr<CrossEntropyProblem> ReadCrossEntropyProblem(
    BindContext* context, const Tensor& x) {
  if (x.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (context->Attr<bool>("soft_label") || !context->Attr<bool>("use_softmax"))
    return Unimplemented("it is for the softmax and hard labels only");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(context->Attr<int32_t>("axis"), x.rank()));
  if (axis + 1 != static_cast<int>(x.rank()) || x.size() == 0)
    return Unimplemented("it is for the last axis of a tensor with elements");
  CrossEntropyProblem p;
  p.columns = x.shape().back();
  p.rows = x.size() / p.columns;
  p.ignored = context->Attr<int32_t>("ignore_index");
  Tensor* label = context->Input("Label");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Label", label->dtype(), p.rows));
  PD_ASSIGN_OR_RETURN(p.label, context->In(label, nullptr));
  return p;
}

}  // namespace

absl::StatusOr<Step> BindCrossEntropy(BindContext* context) {
  Tensor* logits = context->Input("Logits");
  PD_ASSIGN_OR_RETURN(const CrossEntropyProblem p,
                      ReadCrossEntropyProblem(context, *logits));
  PD_ASSIGN_OR_RETURN(logits, context->In(logits, nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * softmax,
                      context->Out(context->Output("Softmax"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * loss,
                      context->Out(context->Output("Loss"), nullptr));
  const size_t bytes = sizeof(float) * static_cast<size_t>(p.rows);
  Tensor* maximum = context->Scratch(bytes);
  Tensor* log_sum = context->Scratch(bytes);
  return Step([=](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckLabels("Label", *p.label, p.columns, p.ignored));
    const float* x = logits->data<float>();
    RowSoftmax(x, p.rows, p.columns, softmax->data<float>(),
               maximum->data<float>(), log_sum->data<float>());
    constexpr float kFloor = -64;  // PaddlePaddle's, on x - maximum
    for (int64_t r = 0; r < p.rows; ++r) {
      const int64_t label = LabelAt(*p.label, r);
      if (label == p.ignored) {
        loss->data<float>()[r] = 0;
        continue;
      }
      const float at = x[r * p.columns + label] - maximum->data<float>()[r];
      loss->data<float>()[r] =
          log_sum->data<float>()[r] - (at < kFloor ? kFloor : at);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindCrossEntropyGrad(BindContext* context) {
  Tensor* softmax = context->Input("Softmax");
  PD_ASSIGN_OR_RETURN(const CrossEntropyProblem p,
                      ReadCrossEntropyProblem(context, *softmax));
  Tensor* dloss = context->Input("Loss@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", DType::kFloat32, p.rows));
  PD_ASSIGN_OR_RETURN(dloss, context->In(dloss, nullptr));
  PD_ASSIGN_OR_RETURN(softmax, context->In(softmax, nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * dlogits,
                      context->Out(context->Output("Logits@GRAD"), nullptr));
  context->MayShare(softmax, dlogits);
  Tensor* factor =
      context->Scratch(sizeof(float) * static_cast<size_t>(p.rows));
  return Step([=](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckLabels("Label", *p.label, p.columns, p.ignored));
    const float* g = dloss->data<float>();
    float* factors = factor->data<float>();
    for (int64_t r = 0; r < p.rows; ++r)
      factors[r] = LabelAt(*p.label, r) == p.ignored ? 0.0f : g[r];
    float* dx = dlogits->data<float>();
    ScaleRows(softmax->data<float>(), factors, p.rows, p.columns, dx);
    for (int64_t r = 0; r < p.rows; ++r) {
      const int64_t label = LabelAt(*p.label, r);
      if (label == p.ignored)
        std::fill(dx + r * p.columns, dx + (r + 1) * p.columns, 0.0f);
      else
        dx[r * p.columns + label] -= g[r];
    }
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
