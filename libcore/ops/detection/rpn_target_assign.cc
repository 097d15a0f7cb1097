// SPDX-License-Identifier: Apache-2.0
// Which anchors learn what (Ren et al. 2015; Lin et al. 2017). An anchor is
// foreground when it overlaps a ground truth that is no crowd (scaled by
// ImInfo's third number) by positive_overlap, or as much as any anchor does;
// background when all overlaps are below negative_overlap, also if it was
// foreground.
//   rpn_target_assign: anchors that leave the image by more than
//     rpn_straddle_thresh are out (>= 0); at most rpn_fg_fraction *
//     rpn_batch_size_per_im foreground ones, the rest background, chosen at
//     random if asked. TargetLabel is 1 or 0.
//   retinanet_target_assign: all of them; TargetLabel is the class or 0;
//     ForegroundNumber [N, 1] the foreground ones + 1.
// LocationIndex [f], TargetBBox [f, 4] and BBoxInsideWeight [f, 4] are of the
// foreground, ScoreIndex [s] and TargetLabel [s, 1] of both; indices are among
// the anchors of all images. For each foreground anchor that became background
// a first row of weight 0 stands in. LoD by image. No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/detection/box_targets.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct RpnTargetAssigner {
  Tensor *anchors, *truths, *labels, *crowd, *info;
  Tensor *location, *score, *target, *label, *weight, *number;
  float straddle = -1, positive = 0.7f, negative = 0.3f, fraction = -1;
  int64_t batch = -1;  // anchors of an image; all when not positive
  bool random = false;
  uint64_t stream = 0;

  bool samples() const { return batch > 0 && fraction > 0; }
};

// Anchors of one image, by place among all anchors.
struct Assigned {
  std::vector<int64_t> foreground, background;
  std::vector<int64_t> located;  // with stand-ins in front
  int64_t stand_ins = 0;
};

// An image's anchors within it, and its ground truths with their overlaps.
template <typename T>
struct RpnBoxes {
  std::vector<int64_t> inside;      // anchors
  std::vector<int64_t> truth_rows;  // of GtBoxes
  std::vector<T> truths;
  std::vector<T> best;          // overlap of each anchor
  std::vector<size_t> closest;  // the truth that gives it
  std::vector<bool> is_best_of_some;

  RpnBoxes(const RpnTargetAssigner& a, const T* info, int64_t begin,
           int64_t end) {
    const T* anchors = a.anchors->data<T>();
    const T slack = static_cast<T>(a.straddle);
    for (int64_t i = 0; i < a.anchors->dim(0); ++i) {
      const T* box = anchors + i * 4;
      if (a.straddle < 0 ||
          (box[0] >= -slack && box[1] >= -slack && box[2] < info[1] + slack &&
           box[3] < info[0] + slack))
        inside.push_back(i);
    }
    for (int64_t r = begin; r < end; ++r) {
      if (LabelAt(*a.crowd, r) != 0) continue;
      truth_rows.push_back(r);
      for (int k = 0; k < 4; ++k)
        truths.push_back(a.truths->data<T>()[r * 4 + k] * info[2]);
    }
    Overlap(anchors);
  }

 private:
  void Overlap(const T* anchors) {
    const size_t count = truth_rows.size();
    std::vector<T> overlaps;
    std::vector<T> most(count, T(0));
    best.assign(inside.size(), T(0));
    closest.assign(inside.size(), 0);
    for (size_t i = 0; i < inside.size(); ++i)
      for (size_t j = 0; j < count; ++j) {
        const T iou =
            PixelOverlap(anchors + inside[i] * 4, truths.data() + j * 4);
        overlaps.push_back(iou);
        most[j] = std::max(most[j], iou);
        if (!(iou > best[i])) continue;
        best[i] = iou;
        closest[i] = j;
      }
    for (size_t i = 0; i < inside.size(); ++i) {
      bool is_best = false;
      for (size_t j = 0; j < count; ++j)
        is_best |= std::abs(overlaps[i * count + j] - most[j]) < T(0.00001);
      is_best_of_some.push_back(is_best);
    }
  }
};

template <typename T>
Assigned Assign(const RpnTargetAssigner& a, const RpnBoxes<T>& image,
                RandomStream* random) {
  std::vector<int64_t> first, second;
  for (size_t i = 0; i < image.inside.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (image.is_best_of_some[i] || image.best[i] >= static_cast<T>(a.positive))
      first.push_back(at);
    if (image.best[i] < static_cast<T>(a.negative)) second.push_back(at);
  }
  if (a.samples()) {
    KeepAtMost(static_cast<int64_t>(a.fraction * static_cast<float>(a.batch)),
               random, &first);
    KeepAtMost(a.batch - static_cast<int64_t>(first.size()), random, &second);
  }
  std::vector<int> state(image.inside.size(), -1);
  for (int64_t i : first) state[static_cast<size_t>(i)] = 1;
  Assigned result;
  for (int64_t i : second) {
    if (state[static_cast<size_t>(i)] == 1) {
      ++result.stand_ins;
      result.located.push_back(first[0]);
    }
    state[static_cast<size_t>(i)] = 0;
  }
  for (size_t i = 0; i < state.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (state[i] == 1) {
      result.foreground.push_back(at);
      result.located.push_back(at);
    } else if (state[i] == 0) {
      result.background.push_back(at);
    }
  }
  return result;
}

// The elements of the outputs, image after image.
template <typename T>
struct Targets {
  std::vector<int32_t> location, score, label, number;
  std::vector<T> target, weight;
  std::vector<uint64_t> located = {0}, scored = {0};

  void Add(const RpnTargetAssigner& a, const RpnBoxes<T>& image,
           const Assigned& assigned, int64_t first_anchor) {
    int64_t left = assigned.stand_ins;
    for (int64_t i : assigned.located) {
      const int64_t anchor = image.inside[static_cast<size_t>(i)];
      location.push_back(static_cast<int32_t>(first_anchor + anchor));
      T delta[4] = {T(0), T(0), T(0), T(0)};
      if (!image.truths.empty())
        BoxToDelta(a.anchors->data<T>() + anchor * 4,
                   image.truths.data() + Closest(image, i) * 4,
                   static_cast<const float*>(nullptr), delta);
      target.insert(target.end(), delta, delta + 4);
      weight.insert(weight.end(), 4, left-- > 0 ? T(0) : T(1));
    }
    for (int64_t i : assigned.foreground) {
      score.push_back(static_cast<int32_t>(
          first_anchor + image.inside[static_cast<size_t>(i)]));
      label.push_back(
          a.labels == nullptr
              ? 1
              : static_cast<int32_t>(
                    LabelAt(*a.labels, image.truth_rows[Closest(image, i)])));
    }
    for (int64_t i : assigned.background) {
      score.push_back(static_cast<int32_t>(
          first_anchor + image.inside[static_cast<size_t>(i)]));
      label.push_back(0);
    }
    number.push_back(static_cast<int32_t>(assigned.located.size()) + 1);
    located.push_back(location.size());
    scored.push_back(score.size());
  }

 private:
  static size_t Closest(const RpnBoxes<T>& image, int64_t i) {
    return image.closest[static_cast<size_t>(i)];
  }
};

template <typename T>
absl::Status WriteRpnTargets(const std::vector<T>& values, int64_t columns,
                             const std::vector<uint64_t>& offsets,
                             Tensor* out) {
  if (out == nullptr) return absl::OkStatus();
  const auto n = static_cast<int64_t>(values.size());
  Shape shape = {n};
  if (columns > 0) shape = {n / columns, columns};
  PD_RETURN_IF_ERROR(out->Resize(DTypeOf<T>(), shape));
  std::copy(values.begin(), values.end(), out->data<T>());
  if (!offsets.empty()) out->set_lod({offsets});
  return absl::OkStatus();
}

template <typename T>
absl::Status AssignAll(const RpnTargetAssigner& a, const RunContext& run) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                      RowOffsets("GtBoxes", *a.truths, nullptr));
  const auto images = static_cast<int64_t>(starts.size()) - 1;
  if (a.info->dim(0) != images)
    return InvalidArgument("'GtBoxes' has %d images; 'ImInfo' has %d", images,
                           a.info->dim(0));
  RandomStream random(run.seed, a.stream + run.step * 0x9E3779B97F4A7C15ull);
  Targets<T> targets;
  for (int64_t i = 0; i < images; ++i) {
    const auto at = static_cast<size_t>(i);
    const RpnBoxes<T> image(a, a.info->data<T>() + i * 3, starts[at],
                            starts[at + 1]);
    if (image.truth_rows.empty() && a.labels != nullptr)
      return InvalidArgument("image %d has no ground truth that is no crowd",
                             i);
    targets.Add(a, image, Assign(a, image, a.random ? &random : nullptr),
                i * a.anchors->dim(0));
  }
  PD_RETURN_IF_ERROR(
      WriteRpnTargets(targets.location, 0, targets.located, a.location));
  PD_RETURN_IF_ERROR(
      WriteRpnTargets(targets.score, 0, targets.scored, a.score));
  PD_RETURN_IF_ERROR(
      WriteRpnTargets(targets.target, 4, targets.located, a.target));
  PD_RETURN_IF_ERROR(
      WriteRpnTargets(targets.label, 1, targets.scored, a.label));
  PD_RETURN_IF_ERROR(
      WriteRpnTargets(targets.weight, 4, targets.located, a.weight));
  PD_RETURN_IF_ERROR(WriteRpnTargets(targets.number, 1, {}, a.number));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAssign(BindContext* context) {
  RpnTargetAssigner a;
  const bool rpn = context->op().type == "rpn_target_assign";
  a.anchors = context->Input("Anchor");
  a.truths = context->Input("GtBoxes");
  a.labels = context->Input("GtLabels");
  a.crowd = context->Input("IsCrowd");
  a.info = context->Input("ImInfo");
  a.location = context->Output("LocationIndex");
  a.score = context->Output("ScoreIndex");
  a.target = context->Output("TargetBBox");
  a.label = context->Output("TargetLabel");
  a.weight = context->Output("BBoxInsideWeight");
  a.number = context->Output("ForegroundNumber");
  a.stream = StreamOf(context->op().Out("LocationIndex"));
  a.positive =
      context->Attr<float>(rpn ? "rpn_positive_overlap" : "positive_overlap");
  a.negative =
      context->Attr<float>(rpn ? "rpn_negative_overlap" : "negative_overlap");
  if (rpn) {
    a.straddle = context->Attr<float>("rpn_straddle_thresh");
    a.fraction = context->Attr<float>("rpn_fg_fraction");
    a.batch = context->Attr<int32_t>("rpn_batch_size_per_im");
    a.random = context->Attr<bool>("use_random");
    if (!(a.fraction <= 1))
      return InvalidArgument("attr 'rpn_fg_fraction' is %g; expected 0 to 1",
                             a.fraction);
  }
  const DType dtype = a.anchors->dtype();
  if (a.anchors->rank() != 2 || a.anchors->dim(1) != 4)
    return InvalidArgument("'Anchor' has shape %s; expected [-1, 4]",
                           ToString(a.anchors->shape()));
  const int64_t truths = a.truths->rank() == 0 ? 0 : a.truths->dim(0);
  const int64_t images = a.info->rank() == 0 ? 0 : a.info->dim(0);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GtBoxes", dtype, Shape{truths, 4}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "ImInfo", dtype, Shape{images, 3}));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "IsCrowd", DType::kInt32, truths));
  if (!rpn)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "GtLabels", DType::kInt32, truths));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([a](const RunContext& run) { return AssignAll<T>(a, run); });
  });
}

absl::Status InferAssign(InferContext* context) {
  const DType dtype = context->Input("Anchor").dtype;
  const auto set = [context](const char* slot, Shape shape, DType type) {
    TensorMeta out;
    out.dtype = type;
    out.shape = std::move(shape);
    out.lod_level = 1;
    context->SetOutput(slot, out);
  };
  set("LocationIndex", {-1}, DType::kInt32);
  set("ScoreIndex", {-1}, DType::kInt32);
  set("TargetBBox", {-1, 4}, dtype);
  set("TargetLabel", {-1, 1}, DType::kInt32);
  set("BBoxInsideWeight", {-1, 4}, dtype);
  context->SetOutput("ForegroundNumber", {-1, 1}, DType::kInt32);
  return absl::OkStatus();
}

void AddSlots(OpDef* op) {
  op->Input("Anchor").Input("GtBoxes").Input("IsCrowd").Input("ImInfo");
  op->Output("LocationIndex").Output("ScoreIndex").Output("TargetBBox");
  op->Output("TargetLabel").Output("BBoxInsideWeight");
  op->ShapeFromData().Infer(InferAssign).NoGrad().Reference(BindAssign);
}

}  // namespace

absl::Status RegisterRpnTargetAssign(OpRegistry* registry) {
  OpDef rpn("rpn_target_assign");
  AddSlots(&rpn);
  rpn.Attr("rpn_batch_size_per_im", int32_t{256});
  rpn.RequiredAttr("rpn_straddle_thresh", AttrType::kFloat);
  rpn.Attr("rpn_positive_overlap", 0.7f).Attr("rpn_negative_overlap", 0.3f);
  rpn.Attr("rpn_fg_fraction", 0.25f).Attr("use_random", true);
  PD_RETURN_IF_ERROR(registry->Add(std::move(rpn)));

  OpDef retina("retinanet_target_assign");
  AddSlots(&retina);
  retina.Input("GtLabels").Output("ForegroundNumber");
  retina.Attr("positive_overlap", 0.5f).Attr("negative_overlap", 0.4f);
  return registry->Add(std::move(retina));
}

}  // namespace pd
