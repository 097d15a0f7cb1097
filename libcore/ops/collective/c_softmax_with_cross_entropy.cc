// SPDX-License-Identifier: Apache-2.0
// The classes are divided among the nranks processes of the ring: Logits
// [..., classes of this process], process r has the r-th part of all.
//   Softmax = this process's part of softmax over all classes
//   Loss [..., 1] = -log(softmax at Label), 0 where Label is ignore_index
//   Logits@GRAD = Loss@GRAD * (Softmax - onehot(Label)), 0 for ignored lines
// Label counts all classes. A label outside of them that is not ignore_index
// stops the run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferParallelCrossEntropy(InferContext* context) {
  const TensorMeta& logits = context->Input("Logits");
  if (logits.shape.empty()) return InvalidArgument("Logits have shape []");
  context->Share("Logits", "Softmax");
  Shape loss = logits.shape;
  loss.back() = 1;
  context->SetOutput("Loss", std::move(loss), logits.dtype);
  return absl::OkStatus();
}

// The classes of a process within all classes.
struct ClassesHere {
  int64_t n = 0, begin = 0, all = 0, ignored = 0, lines = 0;
  bool Has(int64_t label) const { return label >= begin && label < begin + n; }
};

absl::StatusOr<ClassesHere> ReadClasses(BindContext* context, const Tensor& x) {
  const auto rank = context->Attr<int32_t>("rank");
  const auto nranks = context->Attr<int32_t>("nranks");
  if (nranks < 1 || rank < 0 || rank >= nranks || x.shape().empty())
    return InvalidArgument("rank is %d of nranks %d, and the shape %s", rank,
                           nranks, ToString(x.shape()));
  ClassesHere here;
  here.n = x.shape().back();
  PD_ASSIGN_OR_RETURN(here.all, CheckedBytes({here.n, nranks}, 1));
  here.begin = here.n * rank;
  here.ignored = context->Attr<int64_t>("ignore_index");
  here.lines = here.n == 0 ? 0 : x.size() / here.n;
  const Tensor* label = context->Input("Label");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Label", label->dtype(), here.lines));
  return here;
}

absl::StatusOr<Step> BindParallelCrossEntropy(BindContext* context) {
  Tensor* logits = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* softmax = context->Output("Softmax");
  Tensor* loss = context->Output("Loss");
  PD_ASSIGN_OR_RETURN(const ClassesHere here, ReadClasses(context, *logits));
  const DType dtype = logits->dtype();
  // The maximum of each line; then its sum, and its logit at the label.
  PD_ASSIGN_OR_RETURN(const int64_t bytes,
                      CheckedBytes({3, here.lines}, SizeOf(dtype)));
  Tensor* scratch = context->Scratch(static_cast<size_t>(bytes));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, id = context->Attr<int32_t>("ring_id"),
                 nranks = context->Attr<int32_t>("nranks"),
                 rank = context->Attr<int32_t>("rank")](
                    const RunContext& run) -> absl::Status {
      PD_ASSIGN_OR_RETURN(const Communicator* ring,
                          RingOf(run, id, nranks, rank));
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, here.all, here.ignored));
      T* max = static_cast<T*>(scratch->raw());
      T* sums = max + here.lines;
      T* at_label = sums + here.lines;
      const T* x = logits->data<T>();
      T* y = softmax->data<T>();
      for (int64_t i = 0; i < here.lines; ++i)
        max[i] = *std::max_element(x + i * here.n, x + (i + 1) * here.n);
      PD_RETURN_IF_ERROR(
          ring->AllReduce(Reduction::kMax, dtype, here.lines, max, max));
      for (int64_t i = 0; i < here.lines; ++i) {
        T sum = T(0);
        for (int64_t k = i * here.n; k < (i + 1) * here.n; ++k)
          sum += y[k] = std::exp(x[k] - max[i]);
        sums[i] = sum;
        const int64_t l = LabelAt(*label, i);
        at_label[i] =
            here.Has(l) ? x[i * here.n + l - here.begin] - max[i] : T(0);
      }
      PD_RETURN_IF_ERROR(
          ring->AllReduce(Reduction::kSum, dtype, 2 * here.lines, sums, sums));
      for (int64_t i = 0; i < here.lines; ++i) {
        for (int64_t k = i * here.n; k < (i + 1) * here.n; ++k) y[k] /= sums[i];
        loss->data<T>()[i] = LabelAt(*label, i) == here.ignored
                                 ? T(0)
                                 : std::log(sums[i]) - at_label[i];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindParallelCrossEntropyGrad(BindContext* context) {
  Tensor* softmax = context->Input("Softmax");
  Tensor* label = context->Input("Label");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("Logits@GRAD");
  PD_ASSIGN_OR_RETURN(const ClassesHere here, ReadClasses(context, *softmax));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", softmax->dtype(), here.lines));
  context->MayShare(softmax, dx);
  return DispatchFloat(softmax->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Label", *label, here.all, here.ignored));
      for (int64_t i = 0; i < here.lines; ++i) {
        const int64_t l = LabelAt(*label, i);
        const T g = l == here.ignored ? T(0) : dloss->data<T>()[i];
        const T* y = softmax->data<T>() + i * here.n;
        T* to = dx->data<T>() + i * here.n;
        for (int64_t k = 0; k < here.n; ++k) to[k] = g * y[k];
        if (here.Has(l) && l != here.ignored) to[l - here.begin] -= g;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferParallelCrossEntropyGrad(InferContext* context) {
  context->Share("Softmax", "Logits@GRAD");
  return absl::OkStatus();
}

void AddClassAttributes(OpDef* op) {
  op->Attr("ignore_index", int64_t{-100}).Attr("ring_id", int32_t{0});
  op->Attr("rank", int32_t{0}).Attr("nranks", int32_t{0});
}

}  // namespace

absl::Status RegisterCSoftmaxWithCrossEntropy(OpRegistry* registry) {
  OpDef op("c_softmax_with_cross_entropy");
  op.Input("Logits").Input("Label").Output("Softmax").Output("Loss");
  AddClassAttributes(&op);
  op.Infer(InferParallelCrossEntropy).With(Trait::kCommunicates);
  op.Reference(BindParallelCrossEntropy);
  op.Grad(GradSpec{"c_softmax_with_cross_entropy_grad",
                   {"Label"},
                   {"Softmax"},
                   {"Loss"},
                   {"Logits"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("c_softmax_with_cross_entropy_grad");
  grad.Input("Label").Input("Softmax").Input("Loss@GRAD");
  grad.Output("Logits@GRAD");
  AddClassAttributes(&grad);
  grad.Infer(InferParallelCrossEntropyGrad).NoGrad();
  grad.Reference(BindParallelCrossEntropyGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
