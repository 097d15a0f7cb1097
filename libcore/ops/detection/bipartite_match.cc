// SPDX-License-Identifier: Apache-2.0
// Which prior box stands for which ground truth (SSD). No gradients.
//   bipartite_match: DistMat [rows of all images, M] with LoD (or one image).
//     The largest similarity takes its row and column, then the largest of the
//     rest, and so on. With per_prediction a column that is left takes its best
//     row too when that is dist_threshold at least. ColToRowMatchIndices
//     [N, M] int32 is the row in its image, -1 for none; ColToRowMatchDist the
//     similarity, 0 for none.
//   mine_hard_examples: of the priors of an image, those with the largest loss.
//     max_negative: unmatched ones nearer than neg_dist_threshold to nothing,
//     neg_pos_ratio for each matched one; hard_example: sample_size of all
//     (with LocLoss added), a match that is not among them is undone. The
//     unmatched ones picked are NegIndices [n, 1] int32, by place, with LoD.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// PaddlePaddle sorts from this many rows on; it then takes similarities that
// the search below ignores.
constexpr int64_t kSortedRows = 130;
constexpr double kLeast = 1e-6;

template <typename T>
struct Matching {
  const T* similar;  // [rows, columns]
  int64_t rows, columns;
  int32_t* match;
  T* distance;

  T At(int64_t row, int64_t column) const {
    return similar[row * columns + column];
  }

  void Take(int64_t row, int64_t column) const {
    match[column] = static_cast<int32_t>(row);
    distance[column] = At(row, column);
  }

  // The largest first, by sorting all.
  void MatchSorted() const {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < rows * columns; ++i)
      if (similar[i] > T(0)) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
      return similar[a] > similar[b];
    });
    std::vector<bool> taken(static_cast<size_t>(rows), false);
    for (int64_t i : order) {
      const int64_t row = i / columns, column = i % columns;
      if (match[column] != -1 || taken[static_cast<size_t>(row)]) continue;
      Take(row, column);
      taken[static_cast<size_t>(row)] = true;
    }
  }

  // The largest first, by looking for it each time.
  void MatchSearched() const {
    std::vector<int64_t> left;
    for (int64_t i = 0; i < rows; ++i) left.push_back(i);
    while (!left.empty()) {
      int64_t column = -1;
      size_t which = 0;
      T best = T(-1);
      for (int64_t j = 0; j < columns; ++j) {
        if (match[j] != -1) continue;
        for (size_t k = 0; k < left.size(); ++k) {
          const T value = At(left[k], j);
          if (value < T(kLeast) || !(value > best)) continue;
          best = value;
          column = j;
          which = k;
        }
      }
      if (column < 0) return;
      Take(left[which], column);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void MatchRest(T threshold) const {
    for (int64_t j = 0; j < columns; ++j) {
      if (match[j] != -1) continue;
      int64_t row = -1;
      T best = T(-1);
      for (int64_t i = 0; i < rows; ++i) {
        const T value = At(i, j);
        if (value < T(kLeast) || !(value >= threshold && value > best))
          continue;
        best = value;
        row = i;
      }
      if (row >= 0) Take(row, j);
    }
  }
};

absl::StatusOr<Step> BindMatch(BindContext* context) {
  Tensor* similar = context->Input("DistMat");
  Tensor* match = context->Output("ColToRowMatchIndices");
  Tensor* distance = context->Output("ColToRowMatchDist");
  const bool rest =
      context->Attr<std::string>("match_type") == "per_prediction";
  const float threshold = context->Attr<float>("dist_threshold");
  std::vector<int64_t> starts = {0, similar->dim(0)};
  if (!similar->lod().empty()) {
    PD_ASSIGN_OR_RETURN(starts, RowOffsets("DistMat", *similar, nullptr));
  }
  return DispatchFloat(similar->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t columns = similar->dim(1);
      std::fill_n(match->data<int32_t>(), match->size(), -1);
      std::fill_n(distance->data<T>(), distance->size(), T(0));
      for (size_t i = 0; i + 1 < starts.size(); ++i) {
        const auto first = static_cast<int64_t>(i) * columns;
        const Matching<T> image = {similar->data<T>() + starts[i] * columns,
                                   starts[i + 1] - starts[i], columns,
                                   match->data<int32_t>() + first,
                                   distance->data<T>() + first};
        if (image.rows >= kSortedRows)
          image.MatchSorted();
        else
          image.MatchSearched();
        if (rest) image.MatchRest(static_cast<T>(threshold));
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferMatch(InferContext* context) {
  const TensorMeta& similar = context->Input("DistMat");
  if (similar.shape.size() != 2)
    return InvalidArgument("'DistMat' has shape %s; expected rank 2",
                           ToString(similar.shape));
  const auto& type = context->Attr<std::string>("match_type");
  if (type != "bipartite" && type != "per_prediction")
    return InvalidArgument("attr 'match_type' is '%s'", type);
  if (similar.lod.size() > 1)
    return InvalidArgument("'DistMat' has %d levels of LoD; expected 1",
                           similar.lod.size());
  int64_t images = 1;
  if (similar.lod_level > 0)
    images = similar.lod.empty()
                 ? -1
                 : static_cast<int64_t>(similar.lod.back().size()) - 1;
  const Shape shape = {images, similar.shape[1]};
  context->SetOutput("ColToRowMatchIndices", shape, DType::kInt32);
  context->SetOutput("ColToRowMatchDist", shape, similar.dtype);
  return absl::OkStatus();
}

struct Miner {
  bool hard = false;
  float ratio = 1, threshold = 0.5f;
  int64_t sample = 0;
};

// One image.
template <typename T>
struct Priors {
  const T* class_loss;
  const T* box_loss;  // may be null
  const int32_t* match;
  const T* distance;
  int64_t n;
};

// Places in rising order; a match that is undone becomes -1 in `updated`.
template <typename T>
std::vector<int32_t> Mine(const Miner& miner, const Priors<T>& p,
                          int32_t* updated) {
  std::vector<int64_t> candidates;
  std::vector<T> losses(p.class_loss, p.class_loss + p.n);
  int64_t positive = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    positive += p.match[i] != -1;
    if (miner.hard && p.box_loss != nullptr)
      losses[static_cast<size_t>(i)] += p.box_loss[i];
    if (miner.hard ||
        (p.match[i] == -1 && p.distance[i] < static_cast<T>(miner.threshold)))
      candidates.push_back(i);
  }
  const auto count = static_cast<int64_t>(candidates.size());
  const double wanted =
      miner.hard ? static_cast<double>(miner.sample)
                 : std::floor(static_cast<float>(positive) * miner.ratio);
  const auto pick = wanted < static_cast<double>(count)
                        ? static_cast<int64_t>(wanted)
                        : count;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&losses](int64_t a, int64_t b) {
                     return static_cast<float>(losses[static_cast<size_t>(a)]) >
                            static_cast<float>(losses[static_cast<size_t>(b)]);
                   });
  std::vector<bool> picked(static_cast<size_t>(p.n), false);
  for (int64_t i = 0; i < pick; ++i)
    picked[static_cast<size_t>(candidates[static_cast<size_t>(i)])] = true;
  std::vector<int32_t> negative;
  for (int64_t i = 0; i < p.n; ++i) {
    const bool is_picked = picked[static_cast<size_t>(i)];
    const bool matched = miner.hard && p.match[i] > -1;
    if (matched && !is_picked) updated[i] = -1;
    if (!matched && is_picked) negative.push_back(static_cast<int32_t>(i));
  }
  return negative;
}

absl::StatusOr<Step> BindMine(BindContext* context) {
  Tensor* class_loss = context->Input("ClsLoss");
  Tensor* box_loss = context->Input("LocLoss");
  Tensor* match = context->Input("MatchIndices");
  Tensor* distance = context->Input("MatchDist");
  Tensor* negative = context->Output("NegIndices");
  Tensor* updated = context->Output("UpdatedMatchIndices");
  const Shape& shape = match->shape();
  const DType dtype = class_loss->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "ClsLoss", dtype, shape));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "LocLoss", dtype, shape));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "MatchIndices", DType::kInt32, shape));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "MatchDist", dtype, shape));
  Miner miner;
  miner.hard = context->Attr<std::string>("mining_type") == "hard_example";
  miner.ratio = context->Attr<float>("neg_pos_ratio");
  miner.threshold = context->Attr<float>("neg_dist_threshold");
  miner.sample = context->Attr<int32_t>("sample_size");
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t n = match->dim(1);
      const int32_t* matches = match->data<int32_t>();
      std::vector<int32_t> undone(matches, matches + match->size());
      std::vector<int32_t> all;
      std::vector<uint64_t> offsets = {0};
      for (int64_t i = 0; i < match->dim(0); ++i) {
        const Priors<T> priors = {
            class_loss->data<T>() + i * n,
            box_loss == nullptr ? nullptr : box_loss->data<T>() + i * n,
            matches + i * n, distance->data<T>() + i * n, n};
        const auto found = Mine(miner, priors, undone.data() + i * n);
        all.insert(all.end(), found.begin(), found.end());
        offsets.push_back(all.size());
      }
      PD_RETURN_IF_ERROR(updated->Resize(DType::kInt32, match->shape()));
      std::copy(undone.begin(), undone.end(), updated->data<int32_t>());
      PD_RETURN_IF_ERROR(negative->Resize(
          DType::kInt32, {static_cast<int64_t>(all.size()), 1}));
      std::copy(all.begin(), all.end(), negative->data<int32_t>());
      negative->set_lod({offsets});
      return absl::OkStatus();
    });
  });
}

absl::Status InferMine(InferContext* context) {
  for (const char* slot : {"ClsLoss", "LocLoss", "MatchIndices", "MatchDist"})
    if (context->HasInput(slot) && context->Input(slot).shape.size() != 2)
      return InvalidArgument("'%s' has shape %s; expected rank 2", slot,
                             ToString(context->Input(slot).shape));
  const auto& type = context->Attr<std::string>("mining_type");
  const float ratio = context->Attr<float>("neg_pos_ratio");
  const float threshold = context->Attr<float>("neg_dist_threshold");
  const int32_t sample = context->Attr<int32_t>("sample_size");
  if (type == "max_negative") {
    if (!(ratio > 0) || !(threshold > 0 && threshold < 1))
      return InvalidArgument(
          "attr 'neg_pos_ratio' is %g and 'neg_dist_threshold' %g; expected "
          "more than 0, the latter less than 1",
          ratio, threshold);
  } else if (type != "hard_example") {
    return InvalidArgument("attr 'mining_type' is '%s'", type);
  } else if (sample <= 0) {
    return InvalidArgument("attr 'sample_size' is %d; expected more than 0",
                           sample);
  }
  TensorMeta negative;
  negative.dtype = DType::kInt32;
  negative.shape = {-1, 1};
  negative.lod_level = 1;
  context->SetOutput("NegIndices", negative);
  context->SetOutput("UpdatedMatchIndices",
                     context->Input("MatchIndices").shape, DType::kInt32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBipartiteMatch(OpRegistry* registry) {
  OpDef match("bipartite_match");
  match.Input("DistMat").Output("ColToRowMatchIndices");
  match.Output("ColToRowMatchDist");
  match.Attr("match_type", std::string("bipartite"));
  match.Attr("dist_threshold", 0.5f);
  match.Infer(InferMatch).NoGrad().Reference(BindMatch);
  PD_RETURN_IF_ERROR(registry->Add(std::move(match)));

  OpDef mine("mine_hard_examples");
  mine.Input("ClsLoss").OptionalInput("LocLoss").Input("MatchIndices");
  mine.Input("MatchDist").Output("NegIndices").Output("UpdatedMatchIndices");
  mine.Attr("neg_pos_ratio", 1.0f).Attr("neg_dist_threshold", 0.5f);
  mine.Attr("sample_size", int32_t{0});
  mine.Attr("mining_type", std::string("max_negative"));
  mine.ShapeFromData().Infer(InferMine).NoGrad().Reference(BindMine);
  return registry->Add(std::move(mine));
}

}  // namespace pd
