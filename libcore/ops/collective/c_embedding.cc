// SPDX-License-Identifier: Apache-2.0
// c_embedding: this process holds rows start_index, start_index + 1, ... of a
//   table that is divided among processes.
//   Out[..., :] = W[Ids[...] - start_index, :], or 0 for an id that is not here
//   W@GRAD[r, :] = sum of Out@GRAD[..., :] over Ids = r + start_index
// c_allreduce_sum over the ring makes whole rows of the parts.
#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferCEmbedding(InferContext* context) {
  const TensorMeta& w = context->Input("W");
  if (w.shape.size() != 2)
    return InvalidArgument("W has shape %s; expected two axes",
                           ToString(w.shape));
  Shape shape = context->Input("Ids").shape;
  shape.push_back(w.shape[1]);
  context->SetOutput("Out", std::move(shape), w.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCEmbedding(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids->dtype()));
  const auto start = context->Attr<int64_t>("start_index");
  const int64_t rows = w->dim(0), width = w->dim(1);
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = ids->size()](const RunContext&) {
      for (int64_t i = 0; i < n; ++i) {
        T* row = out->data<T>() + i * width;
        const int64_t id = LabelAt(*ids, i);
        // Compared before it is subtracted: ids can be anything.
        if (id < start || id - start >= rows)
          std::fill_n(row, width, T(0));
        else
          std::copy_n(w->data<T>() + (id - start) * width, width, row);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindCEmbeddingGrad(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dw = context->Output("W@GRAD");
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids->dtype()));
  if (w->shape().size() != 2)
    return InvalidArgument("W has shape %s; expected two axes",
                           ToString(w->shape()));
  const int64_t rows = w->dim(0), width = w->dim(1);
  PD_ASSIGN_OR_RETURN(const int64_t elements,
                      CheckedBytes({ids->size(), width}, 1));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", w->dtype(), elements));
  const auto start = context->Attr<int64_t>("start_index");
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = ids->size()](const RunContext&) {
      std::fill_n(dw->data<T>(), dw->size(), T(0));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t id = LabelAt(*ids, i);
        if (id < start || id - start >= rows) continue;
        const T* from = dout->data<T>() + i * width;
        T* row = dw->data<T>() + (id - start) * width;
        for (int64_t k = 0; k < width; ++k) row[k] += from[k];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterCEmbedding(OpRegistry* registry) {
  OpDef op("c_embedding");
  op.Input("W").Input("Ids").Output("Out");
  op.Attr("start_index", int64_t{0}).Attr("vocab_size", int64_t{-1});
  op.Infer(InferCEmbedding).Reference(BindCEmbedding);
  op.Grad(GradSpec{"c_embedding_grad", {"W", "Ids"}, {}, {"Out"}, {"W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("c_embedding_grad");
  grad.Input("W").Input("Ids").Input("Out@GRAD").Output("W@GRAD");
  grad.Attr("start_index", int64_t{0}).Attr("vocab_size", int64_t{-1});
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCEmbeddingGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
