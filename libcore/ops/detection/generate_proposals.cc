// SPDX-License-Identifier: Apache-2.0
// Region proposals (Ren et al. 2015) out of Scores [N, A, H, W] and BboxDeltas
// [N, 4 A, H, W]: of each image the pre_nms_topN best anchors are moved by
// their deltas times Variances, clipped to the image, dropped where a side is
// less than min_size (1 at least), and suppressed; post_nms_topN are left.
// An image with none has one box of zeros. RpnRois [n, 4] and RpnRoiProbs
// [n, 1] have LoD, RpnRoisNum their counts.
//   generate_proposals: ImInfo [N, 3] height, width, scale; coordinates name
//     pixels, and min_size is of the image before it was scaled
//   generate_proposals_v2: ImShape [N, 2]; pixel_offset chooses
// No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/nms.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Proposer {
  Tensor *scores, *deltas, *info, *anchors, *variances;
  Tensor *rois, *probabilities, *number;
  int64_t before = 0, after = 0;
  float threshold = 0, min_size = 0, eta = 1;
  bool pixels = true, scaled = false;

  int64_t count() const { return scores->dim(1); }  // anchors of a cell
  int64_t cells() const { return scores->dim(2) * scores->dim(3); }
};

template <typename T>
struct Proposal {
  T box[4];
  T score;
};

// Places of the best anchors, as (cell, anchor) row-major. PaddlePaddle's
// algorithms, so equal scores come in its order; NaN ranks first.
template <typename T>
std::vector<int32_t> BestAnchors(const Proposer& p, const std::vector<T>& s) {
  std::vector<int32_t> order(s.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&s](int32_t i, int32_t j) {
    const T a = s[static_cast<size_t>(i)], b = s[static_cast<size_t>(j)];
    return (a != a && b == b) || a > b;
  };
  if (p.before <= 0 || p.before >= static_cast<int64_t>(s.size())) {
    std::sort(order.begin(), order.end(), better);
  } else {
    std::nth_element(order.begin(), order.begin() + p.before, order.end(),
                     better);
    order.resize(static_cast<size_t>(p.before));
  }
  return order;
}

// The anchor moved by its delta and clipped to the image.
template <typename T>
Proposal<T> Move(const Proposer& p, const T* deltas, const T* info, int64_t at,
                 T score) {
  static const double kMostLog = std::log(1000.0 / 16.0);
  const T extra = p.pixels ? T(1) : T(0);
  const T* anchor = p.anchors->data<T>() + at * 4;
  const T* variance = p.variances->data<T>() + at * 4;
  const int64_t cell = at / p.count(), channel = at % p.count() * 4;
  const auto delta = [&](int k) {
    return variance[k] * deltas[(channel + k) * p.cells() + cell];
  };
  Proposal<T> proposal;
  proposal.score = score;
  for (int k = 0; k < 2; ++k) {
    const T size = anchor[k + 2] - anchor[k] + extra;
    const T centre = delta(k) * size + anchor[k] + T(0.5) * size;
    const T extent =
        std::exp(std::min(delta(k + 2), static_cast<T>(kMostLog))) * size;
    const T last = info[1 - k] - extra;
    const auto clip = [last](T value) {
      return std::max(std::min(value, last), T(0));
    };
    proposal.box[k] = clip(centre - extent / 2);
    proposal.box[k + 2] = clip(centre + extent / 2 - extra);
  }
  return proposal;
}

template <typename T>
bool IsLarge(const Proposer& p, const T* box, const T* info) {
  const T least = static_cast<T>(std::max(p.min_size, 1.0f));
  const T extra = p.pixels ? T(1) : T(0);
  for (int k = 0; k < 2; ++k) {
    const T size = box[k + 2] - box[k] + extra;
    const T own = p.scaled ? (box[k + 2] - box[k]) / info[2] + 1 : size;
    if (!(own >= least)) return false;
    if (p.pixels && !(box[k] + size / 2 <= info[1 - k])) return false;
  }
  return true;
}

template <typename T>
std::vector<Proposal<T>> ProposeFor(const Proposer& p, int64_t image) {
  const int64_t count = p.count(), cells = p.cells();
  const T* scores = p.scores->data<T>() + image * count * cells;
  const T* deltas = p.deltas->data<T>() + image * count * 4 * cells;
  const T* info = p.info->data<T>() + image * p.info->dim(1);
  std::vector<T> by_cell(static_cast<size_t>(count * cells));
  for (int64_t i = 0; i < count * cells; ++i)
    by_cell[static_cast<size_t>(i)] = scores[i % count * cells + i / count];
  std::vector<Proposal<T>> found;
  for (int32_t at : BestAnchors(p, by_cell)) {
    const Proposal<T> proposal =
        Move(p, deltas, info, at, by_cell[static_cast<size_t>(at)]);
    if (IsLarge(p, proposal.box, info)) found.push_back(proposal);
  }
  if (found.empty()) return {Proposal<T>{{}, T(0)}};
  if (!(p.threshold > 0)) return found;
  // Best first; of equal ones the last.
  std::vector<ScoredBox<T>> order;
  for (size_t i = found.size(); i-- > 0;)
    order.push_back({found[i].score, static_cast<int64_t>(i)});
  std::stable_sort(order.begin(), order.end(),
                   [](const ScoredBox<T>& a, const ScoredBox<T>& b) {
                     return a.score > b.score;
                   });
  std::vector<int64_t> kept = Suppress(
      order, 4, static_cast<T>(p.threshold), static_cast<T>(p.eta), !p.pixels,
      [&found](int64_t i) { return found[static_cast<size_t>(i)].box; });
  if (p.after > 0 && p.after < static_cast<int64_t>(kept.size()))
    kept.resize(static_cast<size_t>(p.after));
  std::vector<Proposal<T>> best;
  for (int64_t i : kept) best.push_back(found[static_cast<size_t>(i)]);
  return best;
}

template <typename T>
absl::Status Propose(const Proposer& p) {
  const int64_t images = p.scores->dim(0);
  std::vector<Proposal<T>> all;
  std::vector<uint64_t> offsets = {0};
  for (int64_t i = 0; i < images; ++i) {
    const std::vector<Proposal<T>> own = ProposeFor<T>(p, i);
    all.insert(all.end(), own.begin(), own.end());
    offsets.push_back(all.size());
  }
  const auto n = static_cast<int64_t>(all.size());
  PD_RETURN_IF_ERROR(p.rois->Resize(p.scores->dtype(), {n, 4}));
  PD_RETURN_IF_ERROR(p.probabilities->Resize(p.scores->dtype(), {n, 1}));
  for (int64_t i = 0; i < n; ++i) {
    const Proposal<T>& proposal = all[static_cast<size_t>(i)];
    std::copy_n(proposal.box, 4, p.rois->data<T>() + i * 4);
    p.probabilities->data<T>()[i] = proposal.score;
  }
  p.rois->set_lod({offsets});
  p.probabilities->set_lod({offsets});
  if (p.number == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(p.number->Resize(DType::kInt32, {images}));
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    p.number->data<int32_t>()[i] =
        static_cast<int32_t>(offsets[i + 1] - offsets[i]);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindProposals(BindContext* context) {
  Proposer p;
  p.scaled = context->op().type == "generate_proposals";
  const char* info = p.scaled ? "ImInfo" : "ImShape";
  p.scores = context->Input("Scores");
  p.deltas = context->Input("BboxDeltas");
  p.info = context->Input(info);
  p.anchors = context->Input("Anchors");
  p.variances = context->Input("Variances");
  p.rois = context->Output("RpnRois");
  p.probabilities = context->Output("RpnRoiProbs");
  p.number = context->Output("RpnRoisNum");
  p.before = context->Attr<int32_t>("pre_nms_topN");
  p.after = context->Attr<int32_t>("post_nms_topN");
  p.threshold = context->Attr<float>("nms_thresh");
  p.min_size = context->Attr<float>("min_size");
  p.eta = context->Attr<float>("eta");
  p.pixels = p.scaled || context->Attr<bool>("pixel_offset");
  const DType dtype = p.scores->dtype();
  const Shape& s = p.scores->shape();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "BboxDeltas", dtype,
                                 Shape{s[0], s[1] * 4, s[2], s[3]}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, info, dtype, Shape{s[0], p.scaled ? 3 : 2}));
  const int64_t numbers = s[1] * s[2] * s[3] * 4;
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Anchors", dtype, numbers));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Variances", dtype, numbers));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([p](const RunContext&) { return Propose<T>(p); });
  });
}

absl::Status InferProposals(InferContext* context) {
  const TensorMeta& scores = context->Input("Scores");
  if (scores.shape.size() != 4)
    return InvalidArgument("'Scores' has shape %s; expected rank 4",
                           ToString(scores.shape));
  TensorMeta out;
  out.dtype = scores.dtype;
  out.lod_level = 1;
  out.shape = {-1, 4};
  context->SetOutput("RpnRois", out);
  out.shape = {-1, 1};
  context->SetOutput("RpnRoiProbs", out);
  context->SetOutput("RpnRoisNum", {scores.shape[0]}, DType::kInt32);
  return absl::OkStatus();
}

OpDef ProposalsOp(absl::string_view type, absl::string_view info) {
  OpDef op(type);
  op.Input("Scores").Input("BboxDeltas").Input(info).Input("Anchors");
  op.Input("Variances").Output("RpnRois").Output("RpnRoiProbs");
  op.OptionalOutput("RpnRoisNum");
  op.RequiredAttr("pre_nms_topN", AttrType::kInt);
  op.RequiredAttr("post_nms_topN", AttrType::kInt);
  for (const char* name : {"nms_thresh", "min_size", "eta"})
    op.RequiredAttr(name, AttrType::kFloat);
  op.ShapeFromData().Infer(InferProposals).NoGrad().Reference(BindProposals);
  return op;
}

}  // namespace

absl::Status RegisterGenerateProposals(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      registry->Add(ProposalsOp("generate_proposals", "ImInfo")));
  OpDef second = ProposalsOp("generate_proposals_v2", "ImShape");
  second.Attr("pixel_offset", true);
  return registry->Add(std::move(second));
}

}  // namespace pd
