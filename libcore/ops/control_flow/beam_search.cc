// SPDX-License-Identifier: Apache-2.0
// One step of beam search. Row r of pre_ids, pre_scores, ids and scores is a
// prefix; LoD level `level` of scores says which rows belong to which source.
//   candidates of a prefix: its ids (their columns without ids) with their
//     scores, log(scores) + pre_scores unless is_accumulated; a prefix that
//     ends in end_id has only end_id, with its own score
//   selected_ids, selected_scores [n, 1]: the beam_size best of each source,
//     prefix by prefix; none of a source whose prefixes had all ended before
//   parent_idx [n]: their prefix
// LoD of the results: level 0 the sources' prefixes, level 1 the candidates of
// each prefix. Of equal scores the later prefix is preferred, then the earlier
// candidate. No gradient.
#include <algorithm>
#include <cmath>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {
namespace {

struct Candidate {
  int64_t prefix = 0, id = 0;
  float score = 0;

  bool operator<(const Candidate& o) const {
    return score < o.score || (score == o.score && prefix < o.prefix);
  }
};

// The best candidates, best first.
class Beam {
 public:
  explicit Beam(size_t size) : size_(size) {}
  void Clear() { best_.clear(); }
  const std::vector<Candidate>& best() const { return best_; }
  void Insert(const Candidate& candidate) {
    if (best_.size() >= size_) {
      if (candidate < best_.back()) return;
      best_.pop_back();
    }
    auto at = best_.end();
    while (at != best_.begin() && *(at - 1) < candidate) --at;
    best_.insert(at, candidate);
  }

 private:
  size_t size_;
  std::vector<Candidate> best_;
};

// Rows where each source begins, and the end, whatever the levels below.
absl::StatusOr<std::vector<int64_t>> SourceRows(const LoD& lod, size_t level,
                                                int64_t rows) {
  if (level >= lod.size() || lod[level].empty())
    return InvalidArgument("'scores' has %d levels of LoD; attr 'level' is %d",
                           lod.size(), level);
  std::vector<int64_t> begins(lod[level].begin(), lod[level].end());
  for (size_t below = level + 1; below < lod.size(); ++below)
    for (int64_t& begin : begins) {
      if (begin < 0 || begin >= static_cast<int64_t>(lod[below].size()))
        return InvalidArgument("the LoD of 'scores' does not fit together");
      begin = static_cast<int64_t>(lod[below][static_cast<size_t>(begin)]);
    }
  for (size_t i = 0; i + 1 < begins.size(); ++i)
    if (begins[i] > begins[i + 1])
      return InvalidArgument("the LoD of 'scores' falls");
  if (begins.front() != 0 || begins.back() != rows)
    return InvalidArgument("the LoD of 'scores' ends at %d; it has %d rows",
                           begins.back(), rows);
  return begins;
}

struct Search {
  Tensor *pre_ids, *pre_scores, *ids, *scores;
  size_t beam_size;
  int64_t end_id, width;
  bool accumulated;
  std::vector<int64_t> sources;

  template <typename T>
  void Offer(int64_t prefix, Beam* beam) const {
    const T before = pre_scores->data<T>()[prefix];
    if (LabelAt(*pre_ids, prefix) == end_id) {
      beam->Insert({prefix, end_id, static_cast<float>(before)});
      return;
    }
    for (int64_t d = 0; d < width; ++d) {
      const int64_t i = prefix * width + d;
      const T score = scores->data<T>()[i];
      beam->Insert(
          {prefix, ids != nullptr ? LabelAt(*ids, i) : d,
           static_cast<float>(accumulated ? score : before + std::log(score))});
    }
  }

  // Every prefix of these had ended in the step before.
  bool Ended(const std::vector<Candidate>& best) const {
    return std::all_of(best.begin(), best.end(), [this](const Candidate& c) {
      return c.id == end_id && LabelAt(*pre_ids, c.prefix) == end_id;
    });
  }

  // The selected candidates by prefix.
  template <typename T>
  std::vector<std::vector<Candidate>> Select() const {
    std::vector<std::vector<Candidate>> selected(
        static_cast<size_t>(sources.back()));
    Beam beam(beam_size);
    for (size_t s = 0; s + 1 < sources.size(); ++s) {
      beam.Clear();
      for (int64_t r = sources[s]; r < sources[s + 1]; ++r) Offer<T>(r, &beam);
      if (Ended(beam.best())) continue;
      for (const Candidate& c : beam.best())
        selected[static_cast<size_t>(c.prefix)].push_back(c);
    }
    return selected;
  }
};

template <typename T>
absl::Status WriteBeams(const std::vector<std::vector<Candidate>>& selected,
                        const std::vector<int64_t>& sources, Tensor* ids,
                        Tensor* scores, Tensor* parents) {
  LoD lod(2);
  lod[0].assign(sources.begin(), sources.end());
  lod[1].push_back(0);
  for (const auto& of_prefix : selected)
    lod[1].push_back(lod[1].back() + of_prefix.size());
  const auto count = static_cast<int64_t>(lod[1].back());
  PD_RETURN_IF_ERROR(ids->Resize(DType::kInt64, {count, 1}));
  PD_RETURN_IF_ERROR(scores->Resize(DTypeOf<T>(), {count, 1}));
  if (parents != nullptr)
    PD_RETURN_IF_ERROR(parents->Resize(DType::kInt32, {count}));
  ids->set_lod(lod);
  scores->set_lod(lod);
  int64_t at = 0;
  for (const auto& of_prefix : selected)
    for (const Candidate& c : of_prefix) {
      ids->data<int64_t>()[at] = c.id;
      scores->data<T>()[at] = static_cast<T>(c.score);
      if (parents != nullptr)
        parents->data<int32_t>()[at] = static_cast<int32_t>(c.prefix);
      ++at;
    }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBeamSearch(BindContext* context) {
  Search search;
  search.pre_ids = context->Input("pre_ids");
  search.pre_scores = context->Input("pre_scores");
  search.ids = context->Input("ids");
  search.scores = context->Input("scores");
  Tensor* ids = context->Output("selected_ids");
  Tensor* scores = context->Output("selected_scores");
  Tensor* parents = context->Output("parent_idx");
  const int32_t level = context->Attr<int32_t>("level");
  const int32_t beam_size = context->Attr<int32_t>("beam_size");
  if (level < 0 || beam_size < 1)
    return InvalidArgument(
        "attrs 'level' and 'beam_size' are %d and %d; expected 0 or more, 1 or "
        "more",
        level, beam_size);
  search.beam_size = static_cast<size_t>(beam_size);
  search.end_id = context->Attr<int32_t>("end_id");
  search.accumulated = context->Attr<bool>("is_accumulated");
  const DType dtype = search.scores->dtype();
  const int64_t rows = search.scores->rank() == 0 ? 0 : search.scores->dim(0);
  search.width = rows == 0 ? 0 : search.scores->size() / rows;
  PD_ASSIGN_OR_RETURN(
      search.sources,
      SourceRows(search.scores->lod(), static_cast<size_t>(level), rows));
  PD_RETURN_IF_ERROR(CheckLabelType("pre_ids", search.pre_ids->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "pre_ids", search.pre_ids->dtype(), rows));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "pre_scores", dtype, rows));
  if (search.ids != nullptr) {
    PD_RETURN_IF_ERROR(CheckLabelType("ids", search.ids->dtype()));
    PD_RETURN_IF_ERROR(ExpectElements(*context, "ids", search.ids->dtype(),
                                      search.scores->size()));
  }
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      return WriteBeams<T>(search.Select<T>(), search.sources, ids, scores,
                           parents);
    });
  });
}

absl::Status InferBeamSearch(InferContext* context) {
  TensorMeta selected;
  selected.dtype = DType::kInt64;
  selected.shape = {-1, 1};
  selected.lod_level = 2;
  context->SetOutput("selected_ids", selected);
  selected.dtype = context->Input("scores").dtype;
  context->SetOutput("selected_scores", selected);
  context->SetOutput("parent_idx", {-1}, DType::kInt32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBeamSearch(OpRegistry* registry) {
  OpDef op("beam_search");
  op.Input("pre_ids").Input("pre_scores").OptionalInput("ids").Input("scores");
  op.Output("selected_ids").Output("selected_scores");
  op.OptionalOutput("parent_idx");
  op.RequiredAttr("level", AttrType::kInt);
  op.RequiredAttr("beam_size", AttrType::kInt);
  op.RequiredAttr("end_id", AttrType::kInt).Attr("is_accumulated", true);
  op.Infer(InferBeamSearch).ShapeFromData().NoGrad().Reference(BindBeamSearch);
  return registry->Add(std::move(op));
}

}  // namespace pd
