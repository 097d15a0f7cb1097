// SPDX-License-Identifier: Apache-2.0
// Out[..., :] = W[Ids[...], :]; rows of zeros where Ids is padding_idx
// W@GRAD[r, :] = sum of Out@GRAD[..., :] over Ids = r; 0 for r = padding_idx
// padding_idx -1 means none. An id outside [0, rows of W) stops the run. The
// gradient is dense; repeated ids are summed in order, so the bits do not
// depend on the number of threads. With is_sparse it also keeps which rows were
// looked up, for updates in lazy mode (TouchedRowsName).
#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/check.h"
#include "libcore/ops/labels.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/update.h"

namespace pd {
namespace {

constexpr int64_t kNoPadding = -1;

absl::StatusOr<Step> BindLookup(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  const int64_t rows = w->dim(0), width = w->dim(1);
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = ids->size()](const RunContext&) -> absl::Status {
      // An id equal to padding_idx is never looked up, whatever W's height.
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, rows, padding));
      const T* table = w->data<T>();
      T* result = out->data<T>();
      const int64_t grain = 8192 / std::max<int64_t>(width, 1) + 1;
      ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t id = LabelAt(*ids, i);
          T* row = result + i * width;
          if (id == padding)
            std::fill(row, row + width, T(0));
          else
            std::copy_n(table + id * width, width, row);
        }
      });
      return absl::OkStatus();
    });
  });
}

// Sets touched[id] to 1 for the ids that are looked up, the others to 0.
void MarkRows(const Tensor& ids, int64_t padding, Tensor* touched) {
  uint8_t* marks = touched->data<uint8_t>();
  std::fill(marks, marks + touched->size(), uint8_t{0});
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = LabelAt(ids, i);
    if (id != padding) marks[id] = 1;
  }
}

absl::StatusOr<Step> BindLookupGrad(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dw = context->Output("W@GRAD");
  context->NoBuffer(w);
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids->dtype()));
  if (w->rank() != 2)
    return InvalidArgument("'W' has shape %s; expected [rows, width]",
                           ToString(w->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", w->dtype(),
                                    ids->size() * w->dim(1)));
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  const int64_t rows = w->dim(0), width = w->dim(1);
  Tensor* touched =
      context->Attr<bool>("is_sparse")
          ? context->Keep(TouchedRowsName(context->op().Out("W@GRAD")),
                          DType::kUInt8, {rows})
          : nullptr;
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = ids->size()](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, rows, padding));
      if (touched != nullptr) MarkRows(*ids, padding, touched);
      const T* dy = dout->data<T>();
      T* grad = dw->data<T>();
      // Each thread owns columns, so none writes into another's sums.
      ParallelFor(width, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = 0; r < rows; ++r)
          std::fill(grad + r * width + begin, grad + r * width + end, T(0));
        for (int64_t i = 0; i < n; ++i) {
          const int64_t id = LabelAt(*ids, i);
          if (id == padding) continue;
          for (int64_t j = begin; j < end; ++j)
            grad[id * width + j] += dy[i * width + j];
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferLookup(InferContext* context) {
  const TensorMeta& ids = context->Input("Ids");
  const TensorMeta& w = context->Input("W");
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids.dtype));
  if (w.shape.size() != 2)
    return InvalidArgument("'W' has shape %s; expected [rows, width]",
                           ToString(w.shape));
  TensorMeta out;
  out.dtype = w.dtype;
  out.shape = ids.shape;
  out.shape.push_back(w.shape[1]);
  out.lod_level = ids.lod_level;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLookupTableV2(OpRegistry* registry) {
  OpDef lookup("lookup_table_v2");
  lookup.Input("W").Input("Ids").Output("Out");
  lookup.Attr("padding_idx", kNoPadding).Attr("is_sparse", false);
  lookup.Infer(InferLookup).Reference(BindLookup);
  lookup.Grad(
      GradSpec{"lookup_table_v2_grad", {"Ids", "W"}, {}, {"Out"}, {"W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(lookup)));

  OpDef grad("lookup_table_v2_grad");
  grad.Input("Ids").Input("W").Input("Out@GRAD").Output("W@GRAD");
  grad.Attr("padding_idx", kNoPadding).Attr("is_sparse", false);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLookupGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
