// SPDX-License-Identifier: Apache-2.0
// Out: for each sequence of Ids the sum of the rows of W that its ids name. Ids
// is [rows, ..., 1]; each column of ids is summed for itself, and the sums
// stand side by side. Rows for padding_idx (-1: none) are left out.
// W@GRAD[r] = sum of Out@GRAD over the ids that are r, as a dense tensor or,
// with is_sparse, as selected rows: one for each id, zeros for padding_idx.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/embedding/sparse_lookup.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

// Ids per row, and a row of W.
struct Widths {
  int64_t columns = 1, width = 1;
};

absl::StatusOr<Widths> WidthsOf(const Shape& ids, const Shape& w) {
  if (w.size() != 2 || ids.size() < 2 || (ids.back() != 1 && ids.back() != -1))
    return InvalidArgument(
        "'W' has shape %s, 'Ids' %s; expected [rows, width] and [rows, ..., 1]",
        ToString(w), ToString(ids));
  Widths widths;
  widths.columns = 1;
  for (size_t i = 1; i < ids.size(); ++i)
    widths.columns =
        widths.columns < 0 || ids[i] < 0 ? -1 : widths.columns * ids[i];
  widths.width = w[1];
  return widths;
}

absl::Status CheckCombiner(const OpDesc& op) {
  const std::string combiner = op.Attr<std::string>("combiner");
  if (combiner == "sum") return absl::OkStatus();
  return InvalidArgument("attr 'combiner' is '%s'; expected sum", combiner);
}

absl::Status InferPool(InferContext* context) {
  const TensorMeta& ids = context->Input("Ids");
  const TensorMeta& w = context->Input("W");
  PD_RETURN_IF_ERROR(CheckCombiner(context->op()));
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids.dtype));
  PD_ASSIGN_OR_RETURN(const Widths widths, WidthsOf(ids.shape, w.shape));
  PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(ids, "Ids"));
  context->SetOutput(
      "Out",
      {offsets.has_value() ? static_cast<int64_t>(offsets->size()) - 1 : -1,
       widths.columns < 0 || widths.width < 0 ? -1
                                              : widths.columns * widths.width},
      w.dtype);
  return absl::OkStatus();
}

// Calls body(id, where its share of Out starts) for every id that counts.
template <typename Body>
void ForEachId(const Tensor& ids, const Offsets& offsets, const Widths& w,
               int64_t padding, const Body& body) {
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r) {
      for (int64_t c = 0; c < w.columns; ++c) {
        const int64_t id = LabelAt(ids, r * w.columns + c);
        if (id != padding)
          body(id, (static_cast<int64_t>(i) * w.columns + c) * w.width);
      }
    }
  }
}

absl::StatusOr<Step> BindPool(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  PD_ASSIGN_OR_RETURN(const Widths widths, WidthsOf(ids->shape(), w->shape()));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(ids, "Ids"));
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, w->dim(0), padding));
      T* result = out->data<T>();
      std::fill_n(result, out->size(), T(0));
      ForEachId(*ids, offsets, widths, padding, [&](int64_t id, int64_t at) {
        const T* row = w->data<T>() + id * widths.width;
        for (int64_t k = 0; k < widths.width; ++k) result[at + k] += row[k];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dw = context->Output("W@GRAD");
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  const bool sparse = context->Attr<bool>("is_sparse");
  context->NoBuffer(w);
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids->dtype()));
  PD_ASSIGN_OR_RETURN(const Widths widths, WidthsOf(ids->shape(), w->shape()));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(ids, "Ids"));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", w->dtype(),
                                    (static_cast<int64_t>(offsets.size()) - 1) *
                                        widths.columns * widths.width));
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, height = w->dim(0)](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, height, padding));
      const T* dy = dout->data<T>();
      T* grad = dw->data<T>();
      std::fill_n(grad, dw->size(), T(0));
      if (!sparse) {
        ForEachId(*ids, offsets, widths, padding, [&](int64_t id, int64_t at) {
          for (int64_t k = 0; k < widths.width; ++k)
            grad[id * widths.width + k] += dy[at + k];
        });
        return absl::OkStatus();
      }
      dw->set_height(height);
      dw->rows().assign(static_cast<size_t>(ids->size()), 0);
      int64_t next = 0;
      ForEachId(*ids, offsets, widths, kNone, [&](int64_t id, int64_t at) {
        const int64_t row = next++;
        if (id == padding) return;
        dw->rows()[static_cast<size_t>(row)] = id;
        std::copy_n(dy + at, widths.width, grad + row * widths.width);
      });
      return absl::OkStatus();
    });
  });
}

void AddEmbeddingSeqPoolAttrs(OpDef* op) {
  op->Attr("combiner", std::string("sum")).Attr("padding_idx", int64_t{-1});
  op->Attr("is_sparse", false);
}

}  // namespace

absl::Status RegisterFusedEmbeddingSeqPool(OpRegistry* registry) {
  OpDef op("fused_embedding_seq_pool");
  op.Input("W").Input("Ids").Output("Out");
  AddEmbeddingSeqPoolAttrs(&op);
  op.Infer(InferPool).Reference(BindPool);
  op.Grad(GradSpec{
      "fused_embedding_seq_pool_grad", {"Ids", "W"}, {}, {"Out"}, {"W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("fused_embedding_seq_pool_grad");
  grad.Input("Ids").Input("W").Input("Out@GRAD").Output("W@GRAD");
  AddEmbeddingSeqPoolAttrs(&grad);
  grad.Infer(InferLookupGrad).NoGrad().Reference(BindPoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
