// SPDX-License-Identifier: Apache-2.0
// unzip: the rows of X, `len` elements each, at their places: row i of Y is the
// next one of X where lod[i + 1] - lod[i] is `len`, and zeros where it is 0.
// PaddlePaddle has no gradient for it.
#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferUnzip(InferContext* context) {
  const TensorMeta& lod = context->Input("lod");
  PD_RETURN_IF_ERROR(CheckIndexType("lod", lod.dtype));
  const int64_t len = context->Attr<int32_t>("len");
  if (len < 1 || lod.shape.size() != 1 || lod.shape[0] == 0)
    return InvalidArgument(
        "attr 'len' is %d, 'lod' has shape %s; expected 1 or more, and a "
        "vector of offsets",
        len, ToString(lod.shape));
  context->SetOutput("Y", {lod.shape[0] < 0 ? -1 : lod.shape[0] - 1, len},
                     context->Input("X").dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindUnzip(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* lod = context->Input("lod");
  Tensor* y = context->Output("Y");
  const int64_t len = context->Attr<int32_t>("len");
  const size_t row = static_cast<size_t>(len) * SizeOf(x->dtype());
  return Step([=, rows = lod->size() - 1](const RunContext&) -> absl::Status {
    int64_t taken = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t begin = LabelAt(*lod, i), end = LabelAt(*lod, i + 1);
      char* to = y->data<char>() + static_cast<size_t>(i) * row;
      if (begin == end) {
        std::memset(to, 0, row);
        continue;
      }
      if (end - len != begin || (taken + 1) * len > x->size())
        return InvalidArgument(
            "'lod' goes from %d to %d at row %d; rows have %d elements or "
            "none, and 'X' has %d elements",
            begin, end, i, len, x->size());
      std::memcpy(to, x->data<char>() + static_cast<size_t>(taken++) * row,
                  row);
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterUnzip(OpRegistry* registry) {
  OpDef op("unzip");
  op.Input("X").Input("lod").Output("Y").Attr("len", int32_t{1});
  op.Infer(InferUnzip).NoGrad().Reference(BindUnzip);
  return registry->Add(std::move(op));
}

}  // namespace pd
