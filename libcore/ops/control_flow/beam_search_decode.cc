// SPDX-License-Identifier: Apache-2.0
// The sentences that beam_search found: Ids and Scores are tensor arrays with
// its results, one element a step, LoD of two levels (sources' prefixes, the
// candidates of each prefix). From the last step, or the one where a source was
// pruned, each candidate is followed back through its prefixes; end_id is kept
// once. SentenceIds and SentenceScores [n], LoD: the sentences of each source,
// best last score first, and the words of each sentence. No gradient.
#include <algorithm>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Its last word first.
template <typename T>
struct Sentence {
  std::vector<int64_t> ids;
  std::vector<T> scores;
  size_t prefix = 0;  // the row of the step before
};

template <typename T>
using Sentences = std::vector<std::vector<Sentence<T>>>;  // by source

bool Covers(const std::vector<uint64_t>& offsets, uint64_t end) {
  return !offsets.empty() && offsets.front() == 0 && offsets.back() == end &&
         std::is_sorted(offsets.begin(), offsets.end());
}

// LoD and sizes of one step, whose prefixes are the rows of the one before.
absl::Status CheckStep(const Tensor& ids, const Tensor& scores, size_t sources,
                       size_t step) {
  const LoD& lod = ids.lod();
  if (lod.size() != 2 || lod[0].size() != sources + 1 || lod[1].empty() ||
      !Covers(lod[0], lod[1].size() - 1) ||
      !Covers(lod[1], static_cast<uint64_t>(ids.size())) ||
      scores.size() != ids.size())
    return InvalidArgument(
        "element %d of 'Ids' has shape %s, of 'Scores' %s; expected two levels "
        "of LoD that fit, of %d sources",
        step, ToString(ids.shape()), ToString(scores.shape()), sources);
  return absl::OkStatus();
}

// Goes one step back with the sentences of a source.
template <typename T>
absl::Status Follow(const Tensor& ids, const Tensor& scores, size_t source,
                    int64_t end_id, std::vector<Sentence<T>>* sentences) {
  const auto& prefixes = ids.lod()[0];
  const auto& rows = ids.lod()[1];
  if (sentences->empty()) {
    for (uint64_t p = prefixes[source]; p < prefixes[source + 1]; ++p)
      for (uint64_t r = rows[p]; r < rows[p + 1]; ++r) {
        Sentence<T> sentence;
        sentence.ids.push_back(LabelAt(ids, static_cast<int64_t>(r)));
        sentence.scores.push_back(scores.data<T>()[r]);
        sentence.prefix = p;
        sentences->push_back(std::move(sentence));
      }
    return absl::OkStatus();
  }
  for (Sentence<T>& sentence : *sentences) {
    const uint64_t row = sentence.prefix;
    if (row >= rows.back())
      return InvalidArgument(
          "a step of 'Ids' has %d rows; the next one has a "
          "prefix %d",
          rows.back(), row);
    const int64_t id = LabelAt(ids, static_cast<int64_t>(row));
    if (id != end_id) {
      sentence.ids.push_back(id);
      sentence.scores.push_back(scores.data<T>()[row]);
    }
    // The prefix whose candidates hold this row.
    sentence.prefix = static_cast<size_t>(
        std::upper_bound(rows.begin(), rows.end(), row) - rows.begin() - 1);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status WriteSentences(Sentences<T>* by_source, Tensor* ids,
                            Tensor* scores) {
  LoD lod = {{0}, {0}};
  int64_t total = 0;
  for (auto& sentences : *by_source) {
    std::stable_sort(sentences.begin(), sentences.end(),
                     [](const Sentence<T>& a, const Sentence<T>& b) {
                       return a.scores.front() > b.scores.front();
                     });
    for (const Sentence<T>& s : sentences) {
      total += static_cast<int64_t>(s.ids.size());
      lod[1].push_back(static_cast<uint64_t>(total));
    }
    lod[0].push_back(lod[1].size() - 1);
  }
  PD_RETURN_IF_ERROR(ids->Resize(DType::kInt64, {total}));
  PD_RETURN_IF_ERROR(scores->Resize(DTypeOf<T>(), {total}));
  ids->set_lod(lod);
  scores->set_lod(lod);
  int64_t* to_ids = ids->data<int64_t>();
  T* to_scores = scores->data<T>();
  for (const auto& sentences : *by_source)
    for (const Sentence<T>& s : sentences) {
      to_ids = std::copy(s.ids.rbegin(), s.ids.rend(), to_ids);
      to_scores = std::copy(s.scores.rbegin(), s.scores.rend(), to_scores);
    }
  return absl::OkStatus();
}

template <typename T>
absl::Status Decode(const Tensor& ids, const Tensor& scores, int64_t end_id,
                    Tensor* sentence_ids, Tensor* sentence_scores) {
  const auto& steps = ids.elements();
  const auto& step_scores = scores.elements();
  if (steps.empty() || steps.size() != step_scores.size())
    return InvalidArgument(
        "'Ids' has %d elements, 'Scores' %d; expected as many, 1 or more",
        steps.size(), step_scores.size());
  if (steps[0].lod().empty() || steps[0].lod()[0].size() < 2)
    return InvalidArgument("element 0 of 'Ids' has no LoD with a source");
  const size_t sources = steps[0].lod()[0].size() - 1;
  Sentences<T> sentences(sources);
  for (size_t step = steps.size(); step-- > 0;) {
    const Tensor &id = steps[step], &score = step_scores[step];
    PD_RETURN_IF_ERROR(CheckLabelType("Ids", id.dtype()));
    if (score.dtype() != DTypeOf<T>())
      return InvalidArgument("element %d of 'Scores' is %s; expected %s", step,
                             Name(score.dtype()), Name(DTypeOf<T>()));
    PD_RETURN_IF_ERROR(CheckStep(id, score, sources, step));
    for (size_t s = 0; s < sources; ++s)
      PD_RETURN_IF_ERROR(Follow<T>(id, score, s, end_id, &sentences[s]));
  }
  PD_RETURN_IF_ERROR(
      WriteSentences<T>(&sentences, sentence_ids, sentence_scores));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBeamSearchDecode(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* scores = context->Input("Scores");
  Tensor* sentence_ids = context->Output("SentenceIds");
  Tensor* sentence_scores = context->Output("SentenceScores");
  const int64_t end_id = context->Attr<int32_t>("end_id");
  return Step([=](const RunContext&) -> absl::Status {
    if (!scores->elements().empty() &&
        scores->elements()[0].dtype() == DType::kFloat64)
      return Decode<double>(*ids, *scores, end_id, sentence_ids,
                            sentence_scores);
    return Decode<float>(*ids, *scores, end_id, sentence_ids, sentence_scores);
  });
}

absl::Status InferBeamSearchDecode(InferContext* context) {
  TensorMeta sentences;
  sentences.dtype = DType::kInt64;
  sentences.shape = {-1};
  sentences.lod_level = 2;
  context->SetOutput("SentenceIds", sentences);
  sentences.dtype = context->Input("Scores").dtype;
  context->SetOutput("SentenceScores", sentences);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBeamSearchDecode(OpRegistry* registry) {
  OpDef op("beam_search_decode");
  op.Input("Ids").Input("Scores");
  op.Output("SentenceIds").Output("SentenceScores");
  op.RequiredAttr("beam_size", AttrType::kInt);
  op.RequiredAttr("end_id", AttrType::kInt);
  op.With(Trait::kReadsArrays)
      .Infer(InferBeamSearchDecode)
      .ShapeFromData()
      .NoGrad();
  op.Reference(BindBeamSearchDecode);
  return registry->Add(std::move(op));
}

}  // namespace pd
