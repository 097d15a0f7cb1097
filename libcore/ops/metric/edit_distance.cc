// SPDX-License-Identifier: Apache-2.0
// Levenshtein's distance of pairs of sequences: the least number of insertions,
// deletions and substitutions that turn Hyps[i] into Refs[i]; divided by the
// length of Refs[i] when `normalized`. Sequences with LoD, or [N, T] with
// HypsLength and RefsLength. Out [N, 1] float32, SequenceNum [1] = N. No
// gradient.
#include "libcore/ops/metric/edit_distance.h"

#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/metric/levenshtein.h"
#include "libcore/ops/registry.h"

namespace pd {
absl::StatusOr<SequenceSpans> EditDistanceSpans(const BindContext& context,
                                                const char* slot,
                                                const char* length_slot) {
  const Tensor* tokens = context.Input(slot);
  const Tensor* lengths = context.Input(length_slot);
  PD_RETURN_IF_ERROR(CheckLabelType(slot, tokens->dtype()));
  if (lengths == nullptr)
    return SequenceSpans::FromLoD(slot, tokens->lod(), tokens->size());
  const int64_t count = tokens->rank() == 0 ? 0 : tokens->dim(0);
  return SequenceSpans::FromLengths(length_slot, lengths, count,
                                    count == 0 ? 0 : tokens->size() / count);
}

namespace {

absl::StatusOr<Step> BindEditDistance(BindContext* context) {
  Tensor* hyps = context->Input("Hyps");
  Tensor* refs = context->Input("Refs");
  Tensor* number = context->Output("SequenceNum");
  Tensor* out = context->Output("Out");
  const bool normalized = context->Attr<bool>("normalized");
  PD_ASSIGN_OR_RETURN(const SequenceSpans of_hyps,
                      EditDistanceSpans(*context, "Hyps", "HypsLength"));
  PD_ASSIGN_OR_RETURN(const SequenceSpans of_refs,
                      EditDistanceSpans(*context, "Refs", "RefsLength"));
  const int64_t count = of_hyps.count();
  if (of_refs.count() != count)
    return InvalidArgument("'Hyps' has %d sequences; 'Refs' has %d", count,
                           of_refs.count());
  return Step([=](const RunContext&) -> absl::Status {
    std::vector<int64_t> row;
    for (int64_t i = 0; i < count; ++i) {
      PD_ASSIGN_OR_RETURN(const Span hyp, of_hyps.At(i));
      PD_ASSIGN_OR_RETURN(const Span ref, of_refs.At(i));
      if (normalized && ref.length == 0)
        return InvalidArgument(
            "sequence %d of 'Refs' is empty; its length is the divisor", i);
      const auto distance = static_cast<float>(
          Levenshtein(LabelsOf(*hyps, hyp), LabelsOf(*refs, ref), &row));
      out->data<float>()[i] =
          normalized ? distance / static_cast<float>(ref.length) : distance;
    }
    if (number != nullptr) number->data<int64_t>()[0] = count;
    return absl::OkStatus();
  });
}

absl::Status InferEditDistance(InferContext* context) {
  const TensorMeta& hyps = context->Input("Hyps");
  if (context->HasInput("HypsLength") != context->HasInput("RefsLength"))
    return InvalidArgument(
        "one of 'HypsLength' and 'RefsLength' is missing; expected both or "
        "none");
  int64_t count = SequenceCount(hyps.lod);
  if (context->HasInput("HypsLength")) {
    if (hyps.shape.empty())
      return InvalidArgument("'Hyps' is a scalar; expected [N, T]");
    count = hyps.shape[0];
  }
  context->SetOutput("Out", {count, 1}, DType::kFloat32);
  context->SetOutput("SequenceNum", {1}, DType::kInt64);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterEditDistance(OpRegistry* registry) {
  OpDef op("edit_distance");
  op.Input("Hyps").Input("Refs");
  op.OptionalInput("HypsLength").OptionalInput("RefsLength");
  op.Output("SequenceNum").Output("Out").Attr("normalized", false);
  op.Infer(InferEditDistance).NoGrad().Reference(BindEditDistance);
  return registry->Add(std::move(op));
}

}  // namespace pd
