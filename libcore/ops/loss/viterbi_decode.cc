// SPDX-License-Identifier: Apache-2.0
// The tags of the highest score of each sequence: Input [B, T, D] are the
// emissions, Transition [D, D] goes from row to column. With
// include_bos_eos_tag the last row starts a sequence and the last but one ends
// it. Scores [B]; Path [B, longest of Length], 0 after a sequence's end. No
// gradient.
#include <algorithm>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {
namespace {

template <typename T>
struct Viterbi {
  const T* w;
  int64_t tags;
  bool bos_eos;

  // x [length, tags]; `score` has room for `tags`, `from` for length of those.
  T Decode(const T* x, int64_t length, int64_t* path) const {
    const auto d = static_cast<size_t>(tags);
    std::vector<T> score(x, x + d), next(d);
    std::vector<int64_t> from(
        static_cast<size_t>(std::max<int64_t>(length, 1)) * d);
    if (bos_eos) Add(w + (tags - 1) * tags, &score);
    for (int64_t k = 1; k < length; ++k) {
      for (size_t j = 0; j < d; ++j) {
        size_t best = 0;
        for (size_t i = 1; i < d; ++i)
          if (score[i] + w[i * d + j] > score[best] + w[best * d + j]) best = i;
        from[static_cast<size_t>(k) * d + j] = static_cast<int64_t>(best);
        next[j] = score[best] + w[best * d + j] +
                  x[k * tags + static_cast<int64_t>(j)];
      }
      score.swap(next);
    }
    if (bos_eos && length > 0) Add(w + (tags - 2) * tags, &score);
    const auto top = std::max_element(score.begin(), score.end());
    if (length > 0) path[length - 1] = top - score.begin();
    for (int64_t k = length - 1; k > 0; --k)
      path[k - 1] = from[static_cast<size_t>(k * tags + path[k])];
    return *top;
  }

  void Add(const T* row, std::vector<T>* score) const {
    for (size_t i = 0; i < score->size(); ++i) (*score)[i] += row[i];
  }
};

absl::StatusOr<Step> BindViterbiDecode(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* transition = context->Input("Transition");
  Tensor* length = context->Input("Length");
  Tensor* scores = context->Output("Scores");
  Tensor* path = context->Output("Path");
  const bool bos_eos = context->Attr<bool>("include_bos_eos_tag");
  if (in->rank() != 3 || in->dim(1) < 1 || in->dim(2) < (bos_eos ? 2 : 1))
    return InvalidArgument("'Input' has shape %s; expected [B, T, D]",
                           ToString(in->shape()));
  const int64_t count = in->dim(0), width = in->dim(1), tags = in->dim(2);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Transition", in->dtype(), {tags, tags}));
  PD_ASSIGN_OR_RETURN(const auto spans, SequenceSpans::FromLengths(
                                            "Length", length, count, width));
  return DispatchFloat(in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      int64_t longest = 0;
      for (int64_t i = 0; i < count; ++i) {
        PD_ASSIGN_OR_RETURN(const Span span, spans.At(i));
        longest = std::max(longest, span.length);
      }
      PD_RETURN_IF_ERROR(scores->Resize(in->dtype(), {count}));
      PD_RETURN_IF_ERROR(path->Resize(DType::kInt64, {count, longest}));
      int64_t* out = path->data<int64_t>();
      std::fill(out, out + count * longest, int64_t{0});
      const Viterbi<T> viterbi{transition->data<T>(), tags, bos_eos};
      for (int64_t i = 0; i < count; ++i)
        scores->data<T>()[i] =
            viterbi.Decode(in->data<T>() + i * width * tags,
                           LabelAt(*length, i), out + i * longest);
      return absl::OkStatus();
    });
  });
}

absl::Status InferViterbiDecode(InferContext* context) {
  const TensorMeta& in = context->Input("Input");
  if (in.shape.size() != 3)
    return InvalidArgument("'Input' has shape %s; expected [B, T, D]",
                           ToString(in.shape));
  context->SetOutput("Scores", {in.shape[0]}, in.dtype);
  context->SetOutput("Path", {in.shape[0], -1}, DType::kInt64);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterViterbiDecode(OpRegistry* registry) {
  OpDef op("viterbi_decode");
  op.Input("Input").Input("Transition").Input("Length");
  op.Output("Scores").Output("Path").Attr("include_bos_eos_tag", true);
  op.Infer(InferViterbiDecode).ShapeFromData().NoGrad();
  op.Reference(BindViterbiDecode);
  return registry->Add(std::move(op));
}

}  // namespace pd
