// SPDX-License-Identifier: Apache-2.0
// Training samples of the second stage of Faster and Cascade R-CNN (Ren et al.
// 2015; Cai and Vasconcelos 2018). The boxes of an image are its ground truths
// and, divided by its scale, its RpnRois. One that overlaps a ground truth by
// fg_thresh is foreground with its class, one by [bg_thresh_lo, bg_thresh_hi)
// background (class 0), a crowd is neither; at most floor(fg_fraction *
// batch_size_per_im) and the rest of batch_size_per_im, chosen at random if
// asked. BboxTargets [n, 4 class_nums] has the regression target over
// bbox_reg_weights in the columns of the class (of 1 with is_cls_agnostic);
// both weights are 1 there. MaxOverlapWithGT is for the next stage: with
// is_cascade_rcnn all boxes stay, but for rois that are empty or overlapped a
// ground truth fully (MaxOverlap 1). LoD by image. No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/detection/box_targets.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Labeler {
  Tensor *rois, *classes, *crowd, *truths, *info, *overlap;
  Tensor* outs[6];  // Rois, labels, targets, inside, outside, overlaps
  int64_t batch = 0, class_count = 0;
  float fraction = 0, foreground = 0, high = 0, low = 0;
  std::vector<float> weights;
  bool random = false, cascade = false, agnostic = false;
  uint64_t stream = 0;
};

// A box that is picked, and the ground truth it belongs to (-1: background).
struct Pick {
  size_t box;
  int64_t truth;
};

// Rows of one image: [begin, end) in each input.
struct Rows {
  int64_t truth_begin, truth_end, roi_begin, roi_end;
  int64_t truths() const { return truth_end - truth_begin; }
};

template <typename T>
struct ProposalBoxes {
  std::vector<T> boxes;  // ground truths first
  std::vector<T> most;   // overlap with any of them

  ProposalBoxes(const Labeler& l, const Rows& rows, T scale) {
    const T* truths = l.truths->data<T>() + rows.truth_begin * 4;
    boxes.assign(truths, truths + rows.truths() * 4);
    const size_t own = boxes.size();
    for (int64_t r = rows.roi_begin; r < rows.roi_end; ++r) {
      T box[4];
      for (int k = 0; k < 4; ++k) box[k] = l.rois->data<T>()[r * 4 + k] / scale;
      if (l.cascade && (IsEmpty(box) || !(l.overlap->data<T>()[r] < T(1))))
        continue;
      boxes.insert(boxes.end(), box, box + 4);
    }
    if (l.cascade && boxes.size() == own) boxes.resize(own + 4, T(0));
    for (size_t i = 0; i < boxes.size(); i += 4) {
      T best = T(0);
      for (int64_t j = 0; j < rows.truths(); ++j)
        best = std::max(best, PixelOverlap(boxes.data() + i, truths + j * 4));
      most.push_back(best);
    }
  }

  static bool IsEmpty(const T* box) {
    return !(box[2] - box[0] + 1 > 0) || !(box[3] - box[1] + 1 > 0);
  }
};

// Foreground first.
template <typename T>
std::vector<Pick> Choose(const Labeler& l, const Rows& rows,
                         const ProposalBoxes<T>& image, RandomStream* random) {
  std::vector<Pick> first, second;
  for (size_t i = 0; i < image.most.size(); ++i) {
    const T* box = image.boxes.data() + i * 4;
    T most = image.most[i];
    if (static_cast<int64_t>(i) < rows.truths() &&
        LabelAt(*l.crowd, rows.truth_begin + static_cast<int64_t>(i)) != 0)
      most = T(-1);
    if (l.cascade && ProposalBoxes<T>::IsEmpty(box)) continue;
    if (most >= static_cast<T>(l.foreground)) {
      for (int64_t j = 0; j < rows.truths(); ++j) {
        if (!(std::abs(most - PixelOverlap(box, image.boxes.data() + j * 4)) <
              T(0.00001)))
          continue;
        first.push_back({i, j});
        break;
      }
    } else if (most >= static_cast<T>(l.low) && most < static_cast<T>(l.high)) {
      second.push_back({i, -1});
    }
  }
  if (!l.cascade) {
    KeepAtMost(static_cast<int64_t>(
                   std::floor(static_cast<float>(l.batch) * l.fraction)),
               random, &first);
    KeepAtMost(l.batch - static_cast<int64_t>(first.size()), random, &second);
  }
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

template <typename T>
struct Results {
  std::vector<T> rois, targets, weights, overlaps;
  std::vector<int32_t> labels;
  std::vector<uint64_t> offsets = {0};

  absl::Status Add(const Labeler& l, const Rows& rows, T scale,
                   const ProposalBoxes<T>& image,
                   const std::vector<Pick>& picks) {
    const size_t width = static_cast<size_t>(l.class_count) * 4;
    for (const Pick& pick : picks) {
      const T* box = image.boxes.data() + pick.box * 4;
      for (int k = 0; k < 4; ++k) rois.push_back(box[k] * scale);
      overlaps.push_back(image.most[pick.box]);
      const size_t row = targets.size();
      targets.resize(row + width, T(0));
      weights.resize(row + width, T(0));
      const int64_t label =
          pick.truth < 0 ? 0
                         : LabelAt(*l.classes, rows.truth_begin + pick.truth);
      labels.push_back(static_cast<int32_t>(label));
      if (label <= 0) continue;
      const int64_t column = l.agnostic ? 1 : label;
      if (column >= l.class_count)
        return InvalidArgument("'GtClasses' has %d; there are %d classes",
                               column, l.class_count);
      const size_t at = row + static_cast<size_t>(column) * 4;
      BoxToDelta(box, image.boxes.data() + pick.truth * 4, l.weights.data(),
                 targets.data() + at);
      std::fill_n(weights.data() + at, 4, T(1));
    }
    offsets.push_back(labels.size());
    return absl::OkStatus();
  }
};

template <typename T>
absl::Status WriteProposalLabels(const std::vector<T>& values, Shape shape,
                                 const std::vector<uint64_t>& offsets,
                                 Tensor* out) {
  if (out == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(out->Resize(DTypeOf<T>(), std::move(shape)));
  std::copy(values.begin(), values.end(), out->data<T>());
  out->set_lod({offsets});
  return absl::OkStatus();
}

template <typename T>
absl::Status RunProposalLabels(const Labeler& l, const RunContext& run) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> truths,
                      RowOffsets("GtBoxes", *l.truths, nullptr));
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> rois,
                      RowOffsets("RpnRois", *l.rois, nullptr));
  const size_t images = rois.size() - 1;
  if (truths.size() != rois.size() ||
      l.info->dim(0) != static_cast<int64_t>(images))
    return InvalidArgument("'RpnRois' has %d images, 'GtBoxes' %d, 'ImInfo' %d",
                           images, truths.size() - 1, l.info->dim(0));
  RandomStream random(run.seed, l.stream + run.step * 0x9E3779B97F4A7C15ull);
  Results<T> results;
  for (size_t i = 0; i < images; ++i) {
    const Rows rows = {truths[i], truths[i + 1], rois[i], rois[i + 1]};
    const T scale = l.info->data<T>()[i * 3 + 2];
    const ProposalBoxes<T> image(l, rows, scale);
    const std::vector<Pick> picks =
        Choose(l, rows, image, l.random ? &random : nullptr);
    // Before the rows of targets grow.
    const size_t total = results.labels.size() + picks.size();
    PD_RETURN_IF_ERROR(CheckTensorSize(
        DTypeOf<T>(), {static_cast<int64_t>(total), l.class_count * 4}));
    PD_RETURN_IF_ERROR(results.Add(l, rows, scale, image, picks));
  }
  const auto n = static_cast<int64_t>(results.labels.size());
  const Shape wide = {n, l.class_count * 4};
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.rois, {n, 4}, results.offsets, l.outs[0]));
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.labels, {n, 1}, results.offsets, l.outs[1]));
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.targets, wide, results.offsets, l.outs[2]));
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.weights, wide, results.offsets, l.outs[3]));
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.weights, wide, results.offsets, l.outs[4]));
  PD_RETURN_IF_ERROR(
      WriteProposalLabels(results.overlaps, {n}, results.offsets, l.outs[5]));
  return absl::OkStatus();
}

constexpr const char* kOutputs[] = {"Rois",
                                    "LabelsInt32",
                                    "BboxTargets",
                                    "BboxInsideWeights",
                                    "BboxOutsideWeights",
                                    "MaxOverlapWithGT"};

absl::StatusOr<Step> BindLabels(BindContext* context) {
  Labeler l;
  l.rois = context->Input("RpnRois");
  l.classes = context->Input("GtClasses");
  l.crowd = context->Input("IsCrowd");
  l.truths = context->Input("GtBoxes");
  l.info = context->Input("ImInfo");
  l.overlap = context->Input("MaxOverlap");
  for (size_t i = 0; i < 6; ++i) l.outs[i] = context->Output(kOutputs[i]);
  l.batch = context->Attr<int32_t>("batch_size_per_im");
  l.class_count = context->Attr<int32_t>("class_nums");
  l.fraction = context->Attr<float>("fg_fraction");
  l.foreground = context->Attr<float>("fg_thresh");
  l.high = context->Attr<float>("bg_thresh_hi");
  l.low = context->Attr<float>("bg_thresh_lo");
  l.weights = context->Attr<std::vector<float>>("bbox_reg_weights");
  l.random = context->Attr<bool>("use_random");
  l.cascade = context->Attr<bool>("is_cascade_rcnn");
  l.agnostic = context->Attr<bool>("is_cls_agnostic");
  l.stream = StreamOf(context->op().Out("Rois"));
  if (!(l.fraction >= 0 && l.fraction <= 1) || l.batch < 0)
    return InvalidArgument(
        "attr 'fg_fraction' is %g and 'batch_size_per_im' %d", l.fraction,
        l.batch);
  const DType dtype = l.rois->dtype();
  const auto rows = [](const Tensor* t) {
    return t->rank() == 0 ? int64_t{0} : t->dim(0);
  };
  const int64_t truths = rows(l.truths), rois = rows(l.rois);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "RpnRois", dtype, Shape{rois, 4}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GtBoxes", dtype, Shape{truths, 4}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ImInfo", dtype, Shape{rows(l.info), 3}));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "GtClasses", DType::kInt32, truths));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "IsCrowd", DType::kInt32, truths));
  if (l.cascade)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "MaxOverlap", dtype, rois));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step(
        [l](const RunContext& run) { return RunProposalLabels<T>(l, run); });
  });
}

absl::Status InferLabels(InferContext* context) {
  const int64_t classes = context->Attr<int32_t>("class_nums");
  const auto& weights = context->Attr<std::vector<float>>("bbox_reg_weights");
  if (classes <= 0 || weights.size() != 4)
    return InvalidArgument(
        "attr 'class_nums' is %d and 'bbox_reg_weights' has %d numbers; "
        "expected more than 0, and 4",
        classes, weights.size());
  const DType dtype = context->Input("RpnRois").dtype;
  const Shape shapes[] = {{-1, 4},           {-1, 1},
                          {-1, classes * 4}, {-1, classes * 4},
                          {-1, classes * 4}, {-1}};
  for (size_t i = 0; i < 6; ++i) {
    TensorMeta out;
    out.dtype = i == 1 ? DType::kInt32 : dtype;
    out.shape = shapes[i];
    out.lod_level = 1;
    context->SetOutput(kOutputs[i], out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterGenerateProposalLabels(OpRegistry* registry) {
  OpDef op("generate_proposal_labels");
  for (const char* slot :
       {"RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo"})
    op.Input(slot);
  op.OptionalInput("MaxOverlap");
  for (const char* slot : kOutputs) op.OptionalOutput(slot);
  op.RequiredAttr("batch_size_per_im", AttrType::kInt);
  op.RequiredAttr("class_nums", AttrType::kInt);
  for (const char* name :
       {"fg_fraction", "fg_thresh", "bg_thresh_hi", "bg_thresh_lo"})
    op.RequiredAttr(name, AttrType::kFloat);
  op.RequiredAttr("bbox_reg_weights", AttrType::kFloats);
  op.Attr("use_random", true).Attr("is_cascade_rcnn", false);
  op.Attr("is_cls_agnostic", false).ShapeFromData();
  op.Infer(InferLabels).NoGrad().Reference(BindLabels);
  return registry->Add(std::move(op));
}

}  // namespace pd
