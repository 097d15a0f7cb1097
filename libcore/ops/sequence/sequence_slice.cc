// SPDX-License-Identifier: Apache-2.0
// Out: of sequence i of X the Length[i] rows from Offset[i] on.
// X@GRAD = Out@GRAD where it came from, 0 elsewhere.
// The number of rows follows from Length, so it is known when that is; Offset
// and Length are read in every step.
#include <cstdint>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status CheckCounts(DType dtype, absl::string_view slot, int64_t have,
                         size_t sequences) {
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return InvalidArgument("'%s' is %s; expected int32 or int64", slot,
                           Name(dtype));
  if (have != static_cast<int64_t>(sequences))
    return InvalidArgument("'%s' has %d elements; 'X' has %d sequences", slot,
                           have, sequences);
  return absl::OkStatus();
}

absl::StatusOr<RowMap> MapOf(const Offsets& offsets, const Tensor& offset,
                             const Tensor& length) {
  const std::vector<int64_t> from = IntsOf(offset), count = IntsOf(length);
  RowMap map;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t rows = offsets[i + 1] - offsets[i];
    if (from[i] < 0 || count[i] < 0 || from[i] > rows ||
        count[i] > rows - from[i])
      return InvalidArgument(
          "sequence %d of 'X' has %d rows; 'Offset' asks for %d from %d on", i,
          rows, count[i], from[i]);
    for (int64_t r = 0; r < count[i]; ++r)
      map.push_back(offsets[i] + from[i] + r);
  }
  return map;
}

absl::Status InferSlice(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(x, "X"));
  TensorMeta out = WithRows(x, -1);
  out.lod_level = x.lod_level;
  const TensorMeta& length = context->Input("Length");
  if (offsets.has_value() && length.value != nullptr) {
    PD_RETURN_IF_ERROR(CheckCounts(length.dtype, "Length", length.value->size(),
                                   offsets->size() - 1));
    Offsets kept = {0};
    for (int64_t n : IntsOf(*length.value)) {
      if (n < 0 || n > offsets->back())
        return InvalidArgument("'Length' holds %d; 'X' has %d rows", n,
                               offsets->back());
      kept.push_back(kept.back() + n);
    }
    out.shape[0] = kept.back();
    out.SetLoD(OneLevel(kept));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSliceOrGrad(BindContext* context, bool grad) {
  Tensor* x = context->Input("X");
  Tensor* offset = context->Input("Offset");
  Tensor* length = context->Input("Length");
  Tensor* from = grad ? context->Input("Out@GRAD") : x;
  Tensor* to = grad ? context->Output("X@GRAD") : context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  if (grad) context->NoBuffer(x);
  PD_RETURN_IF_ERROR(CheckCounts(offset->dtype(), "Offset", offset->size(),
                                 offsets.size() - 1));
  PD_RETURN_IF_ERROR(CheckCounts(length->dtype(), "Length", length->size(),
                                 offsets.size() - 1));
  const Tensor* part = grad ? from : to;
  if (part->dtype() != x->dtype() || part->rank() == 0 ||
      RowWidth(part->shape()) != RowWidth(x->shape()))
    return InvalidArgument("'Out@GRAD' is %s %s; 'X' is %s %s",
                           Name(part->dtype()), ToString(part->shape()),
                           Name(x->dtype()), ToString(x->shape()));
  return Step([=, rows = part->dim(0)](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const RowMap map, MapOf(offsets, *offset, *length));
    if (static_cast<int64_t>(map.size()) != rows)
      return InvalidArgument("'Length' asks for %d rows; 'Out' has %d",
                             map.size(), rows);
    if (grad) return ScatterAddRows(map, *from, to);
    GatherRows(map, *from, to);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindSlice(BindContext* context) {
  return BindSliceOrGrad(context, false);
}
absl::StatusOr<Step> BindSliceGrad(BindContext* context) {
  return BindSliceOrGrad(context, true);
}

}  // namespace

absl::Status RegisterSequenceSlice(OpRegistry* registry) {
  OpDef op("sequence_slice");
  op.Input("X").Input("Offset").Input("Length").Output("Out");
  op.Infer(InferSlice).Reference(BindSlice);
  op.Grad(GradSpec{
      "sequence_slice_grad", {"X", "Offset", "Length"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_slice_grad");
  grad.Input("X").Input("Offset").Input("Length").Input("Out@GRAD");
  grad.Output("X@GRAD").Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindSliceGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
