// SPDX-License-Identifier: Apache-2.0
// lookup_table_dequant: rows of a table of 8-bit numbers. A row of W is its
// minimum, its maximum, and floats whose bytes are the numbers:
//   Out = minimum + (maximum - minimum) / 256 * number
// Ids are [..., 1]; the row of padding_idx is zeros. No gradient.
#include <algorithm>
#include <cstdint>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferLookupDequant(InferContext* context) {
  const TensorMeta& w = context->Input("W");
  TensorMeta out = context->Input("Ids");
  PD_RETURN_IF_ERROR(CheckIndexType("Ids", out.dtype));
  if (w.shape.size() != 2 || w.dtype != DType::kFloat32 ||
      (w.shape[1] >= 0 && w.shape[1] < 3) || out.shape.empty() ||
      (out.shape.back() >= 0 && out.shape.back() != 1))
    return InvalidArgument(
        "'W' is %s %s, 'Ids' has shape %s; expected float32 [rows, 3 or more] "
        "and [..., 1]",
        Name(w.dtype), ToString(w.shape), ToString(out.shape));
  int64_t width = w.shape[1] < 0 ? -1 : w.shape[1] - 2;
  if (width > 0 && __builtin_mul_overflow(width, 4, &width))
    return InvalidArgument("'W' has shape %s", ToString(w.shape));
  out.shape.back() = width;
  out.dtype = DType::kFloat32;
  out.value = nullptr;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLookupDequant(BindContext* context) {
  Tensor* w = context->Input("W");
  Tensor* ids = context->Input("Ids");
  Tensor* out = context->Output("Out");
  const int64_t padding = context->Attr<int64_t>("padding_idx");
  return Step([=](const RunContext&) -> absl::Status {
    const int64_t columns = w->dim(1), width = 4 * (columns - 2);
    PD_RETURN_IF_ERROR(
        CheckIndices("Ids", *ids, padding < 0 ? padding : 0, w->dim(0)));
    for (int64_t i = 0; i < ids->size(); ++i) {
      const int64_t id = LabelAt(*ids, i);
      float* to = out->data<float>() + i * width;
      if (id == padding) {
        std::fill_n(to, width, 0.0f);
        continue;
      }
      if (id < 0)
        return OutOfRange("'Ids' holds %d at %d; expected a row", id, i);
      const float* row = w->data<float>() + id * columns;
      const auto* numbers = reinterpret_cast<const uint8_t*>(row + 2);
      const float scale = (row[1] - row[0]) / 256;
      for (int64_t k = 0; k < width; ++k)
        to[k] = scale * static_cast<float>(numbers[k]) + row[0];
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterLookupTableDequant(OpRegistry* registry) {
  OpDef op("lookup_table_dequant");
  op.Input("W").Input("Ids").Output("Out").Attr("padding_idx", int64_t{-1});
  op.Infer(InferLookupDequant).NoGrad().Reference(BindLookupDequant);
  op.With(Trait::kReadsSomeRows);
  return registry->Add(std::move(op));
}

}  // namespace pd
