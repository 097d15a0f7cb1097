// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/embedding/sparse_lookup.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {

absl::StatusOr<Step> SparseLookupGrad(Tensor* ids, int64_t height,
                                      int64_t padding, Tensor* dout,
                                      Tensor* dw) {
  const size_t row_bytes =
      static_cast<size_t>(RowWidth(*dw)) * SizeOf(dw->dtype());
  return Step([=, n = ids->size()](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckLabels("Ids", *ids, height, padding));
    dw->set_height(height);
    dw->rows().resize(static_cast<size_t>(n));
    const char* from = dout->data<char>();
    char* to = dw->data<char>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t id = LabelAt(*ids, i);
      const size_t at = static_cast<size_t>(i) * row_bytes;
      dw->rows()[static_cast<size_t>(i)] =
          std::clamp<int64_t>(id, 0, std::max<int64_t>(height - 1, 0));
      if (id == padding)
        std::memset(to + at, 0, row_bytes);
      else
        std::memcpy(to + at, from + at, row_bytes);
    }
    return absl::OkStatus();
  });
}

absl::Status InferLookupGrad(InferContext* context) {
  if (!context->Attr<bool>("is_sparse")) return InferGradLikeInput(context);
  const TensorMeta& w = context->Input("W");
  const TensorMeta& ids = context->Input("Ids");
  if (w.shape.size() != 2)
    return InvalidArgument("'W' has shape %s; expected [rows, width]",
                           ToString(w.shape));
  TensorMeta grad;
  grad.dtype = w.dtype;
  grad.kind = VarKind::kSelectedRows;
  grad.height = w.shape[0];
  grad.shape = {IsDynamic(ids.shape) ? -1 : NumElements(ids.shape), w.shape[1]};
  context->SetOutput("W@GRAD", std::move(grad));
  return absl::OkStatus();
}

}  // namespace pd
