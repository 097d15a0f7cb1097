// SPDX-License-Identifier: Apache-2.0
// lookup_table_v2:
// Out[..., :] = W[Ids[...], :]; rows of zeros where Ids is padding_idx
// W@GRAD[r, :] = sum of Out@GRAD[..., :] over Ids = r; 0 for r = padding_idx
// padding_idx -1 means none. An id outside [0, rows of W) stops the run.
// Repeated ids are summed in order, so the bits do not depend on the number of
// threads. With is_sparse the gradient is selected rows: one for each id, as
// they come (sparse_lookup.h).
// lookup_table: the same for Ids of shape [..., 1], whose last axis is W's in
// Out.
#include <algorithm>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/embedding/sparse_lookup.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kNoPadding = -1;

absl::StatusOr<Step> BindLookup(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  const int64_t rows = w->dim(0), width = w->dim(1);
  return DispatchTypes<float, double, int8_t, int16_t, Float16, BFloat16>(
      w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
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
                std::fill(row, row + width, T{});
              else
                std::copy_n(table + id * width, width, row);
            }
          });
          return absl::OkStatus();
        });
      });
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
  if (context->Attr<bool>("is_sparse"))
    return SparseLookupGrad(ids, w->dim(0), padding, dout, dw);
  const int64_t rows = w->dim(0), width = w->dim(1);
  return DispatchFloat(w->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = ids->size()](const RunContext&) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, rows, padding));
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
  if (context->op().type == "lookup_table") {
    if (ids.shape.empty() || (ids.shape.back() != 1 && ids.shape.back() != -1))
      return InvalidArgument("'Ids' has shape %s; expected [..., 1]",
                             ToString(ids.shape));
    out.shape.pop_back();
  }
  out.shape.push_back(w.shape[1]);
  out.lod = ids.lod;
  out.lod_level = ids.lod_level;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status AddLookupOp(OpRegistry* registry, const std::string& type) {
  OpDef lookup(type);
  lookup.Input("W").Input("Ids").Output("Out");
  lookup.Attr("padding_idx", kNoPadding).Attr("is_sparse", false);
  lookup.With(Trait::kReadsSomeRows).Infer(InferLookup).Reference(BindLookup);
  lookup.Grad(GradSpec{type + "_grad", {"Ids", "W"}, {}, {"Out"}, {"W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(lookup)));

  OpDef grad(type + "_grad");
  grad.Input("Ids").Input("W").Input("Out@GRAD").Output("W@GRAD");
  grad.Attr("padding_idx", kNoPadding).Attr("is_sparse", false);
  grad.Infer(InferLookupGrad).Reference(BindLookupGrad);
  grad.Grad(ForwardAgain(type, "W", "Out", {"Ids"}));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterLookupTableV2(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddLookupOp(registry, "lookup_table"));
  return AddLookupOp(registry, "lookup_table_v2");
}

}  // namespace pd
