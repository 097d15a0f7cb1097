// SPDX-License-Identifier: Apache-2.0
// Softmax over each sequence of X, whose rows hold one element:
// Out = exp(X - max) / sum(exp(X - max))
// X@GRAD = Out * (Out@GRAD - sum(Out * Out@GRAD))
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status InferSequenceSoftmax(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(KnownSequences(x, "X", SIZE_MAX).status());
  if (!IsDynamic(x.shape) && NumElements(x.shape) != x.shape[0])
    return InvalidArgument("'X' has shape %s; expected rows of one element",
                           ToString(x.shape));
  context->Share("X", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSequenceSoftmax(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  if (x->size() != x->dim(0))
    return InvalidArgument("'X' has shape %s; expected rows of one element",
                           ToString(x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        const int64_t begin = offsets[i], end = offsets[i + 1];
        if (begin == end) continue;
        const T max = *std::max_element(in + begin, in + end);
        T sum = T(0);
        for (int64_t r = begin; r < end; ++r)
          sum += result[r] = std::exp(in[r] - max);
        for (int64_t r = begin; r < end; ++r) result[r] /= sum;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSequenceSoftmaxGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  if (x->size() != x->dim(0))
    return InvalidArgument("'X' has shape %s; expected rows of one element",
                           ToString(x->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out", x->dtype(), x->size()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* y = out->data<T>();
      const T* dy = dout->data<T>();
      T* result = dx->data<T>();
      for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        T dot = T(0);
        for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r)
          dot += y[r] * dy[r];
        for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r)
          result[r] = y[r] * (dy[r] - dot);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterSequenceSoftmax(OpRegistry* registry) {
  OpDef op("sequence_softmax");
  op.Input("X").Output("Out").Infer(InferSequenceSoftmax);
  op.Reference(BindSequenceSoftmax);
  op.Grad(GradSpec{"sequence_softmax_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_softmax_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSequenceSoftmaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
