// SPDX-License-Identifier: Apache-2.0
// Detections of many classes, by class and image. Out [n, 2 + size] has rows
// [class, score, box]; its LoD (multiclass_nms, multiclass_nms2,
// locality_aware_nms) or NmsRoisNum (multiclass_nms3) tells whose they are.
// Index [n, 1] is the place of the box among BBoxes of all images (times the
// number of classes, plus the class, where each class has boxes of its own).
//   Scores [N, C, M] with BBoxes [N, M, size]: boxes shared by the classes;
//   Scores [M, C] with BBoxes [M, C, 4]: images told by LoD or RoisNum.
// For each class but the background: scores above score_threshold, the best
// nms_top_k of them, suppressed. Of all classes the best keep_top_k are left.
// Rows of 8 to 32 numbers are polygons. Nothing left: [0, 2 + size], or a
// single -1 in ops without Index.
// locality_aware_nms (Zhou et al. 2017) first merges a box with the one before
// it where they overlap, weighted by score. No gradients.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/detection/nms.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct NmsOptions {
  int64_t background = 0;
  double score_threshold = 0, threshold = 0, eta = 1;
  int64_t top_k = -1, keep = -1;
  bool normalized = true;
  bool keeps_empty = false;
  bool merges = false;  // locality aware
};

// The boxes and scores of one image.
template <typename T>
struct NmsImage {
  const T* boxes = nullptr;
  const T* scores = nullptr;
  int64_t n = 0, classes = 0, size = 4;
  bool own_boxes = false;  // of each class
  int64_t first_index = 0;

  int64_t Place(int64_t label, int64_t i) const {
    return own_boxes ? i * classes + label : i;
  }
  const T* Box(int64_t label, int64_t i) const {
    return boxes + Place(label, i) * size;
  }
  T Score(int64_t label, int64_t i) const {
    return own_boxes ? scores[i * classes + label] : scores[label * n + i];
  }
};

template <typename T>
struct Detection {
  int64_t label = 0, at = 0;
  T score = T(0);
};

template <typename T>
std::vector<Detection<T>> Detect(const NmsImage<T>& image,
                                 const NmsOptions& options) {
  std::vector<Detection<T>> found;
  std::vector<T> scores(static_cast<size_t>(image.n));
  for (int64_t label = 0; label < image.classes; ++label) {
    if (label == options.background) continue;
    for (int64_t i = 0; i < image.n; ++i)
      scores[static_cast<size_t>(i)] = image.Score(label, i);
    std::vector<int64_t> kept = Suppress(
        BestBoxes(scores.data(), image.n,
                  static_cast<T>(static_cast<float>(options.score_threshold)),
                  options.top_k),
        image.size, static_cast<T>(options.threshold),
        static_cast<T>(options.eta), options.normalized,
        [&](int64_t i) { return image.Box(label, i); }, options.keeps_empty);
    if (image.own_boxes) std::sort(kept.begin(), kept.end());
    for (int64_t i : kept)
      found.push_back({label, i, scores[static_cast<size_t>(i)]});
  }
  return found;
}

// The best `keep`, by class again.
template <typename T>
void KeepBest(int64_t keep, bool by_place, std::vector<Detection<T>>* found) {
  if (keep < 0 || static_cast<int64_t>(found->size()) <= keep) return;
  using Item = Detection<T>;
  std::stable_sort(
      found->begin(), found->end(), [](const Item& a, const Item& b) {
        return static_cast<float>(a.score) > static_cast<float>(b.score);
      });
  found->resize(static_cast<size_t>(keep));
  std::stable_sort(found->begin(), found->end(),
                   [by_place](const Item& a, const Item& b) {
                     if (a.label != b.label) return a.label < b.label;
                     return by_place && a.at < b.at;
                   });
}

// One image of locality_aware_nms: merging changes the boxes for the classes
// that follow, too.
template <typename T>
struct Merged {
  std::vector<T> boxes, scores;

  std::vector<Detection<T>> Detect(const NmsImage<T>& image,
                                   const NmsOptions& options) {
    boxes.assign(image.boxes, image.boxes + image.n * image.size);
    scores.assign(image.scores, image.scores + image.n * image.classes);
    std::vector<Detection<T>> found;
    for (int64_t label = 0; label < image.classes; ++label) {
      if (label == options.background) continue;
      T* score = scores.data() + label * image.n;
      const std::vector<bool> whole = Merge(image, options, score);
      std::vector<ScoredBox<T>> best;
      for (int64_t i = 0; i < image.n; ++i)
        if (whole[static_cast<size_t>(i)] &&
            score[i] >
                static_cast<T>(static_cast<float>(options.score_threshold)))
          best.push_back({score[i], i});
      SortByScore(&best);
      if (options.top_k >= 0 &&
          options.top_k < static_cast<int64_t>(best.size()))
        best.resize(static_cast<size_t>(options.top_k));
      const std::vector<int64_t> kept =
          Suppress(best, image.size, static_cast<T>(options.threshold),
                   static_cast<T>(options.eta), options.normalized,
                   [&](int64_t i) { return boxes.data() + i * image.size; });
      for (int64_t i : kept) found.push_back({label, i, score[i]});
    }
    return found;
  }

 private:
  // Which boxes were not merged into another one.
  std::vector<bool> Merge(const NmsImage<T>& image, const NmsOptions& options,
                          T* score) {
    std::vector<bool> whole(static_cast<size_t>(image.n), false);
    int64_t into = -1;
    for (int64_t i = 0; i < image.n; ++i) {
      T* box = boxes.data() + i * image.size;
      T* target = boxes.data() + std::max<int64_t>(into, 0) * image.size;
      if (into >= 0 && RowOverlap(box, target, image.size, options.normalized) >
                           static_cast<T>(options.threshold)) {
        for (int64_t k = 0; k < image.size; ++k)
          target[k] = (box[k] * score[i] + target[k] * score[into]) /
                      (score[i] + score[into]);
        score[into] += score[i];
        continue;
      }
      if (into >= 0) whole[static_cast<size_t>(into)] = true;
      into = i;
    }
    if (into >= 0) whole[static_cast<size_t>(into)] = true;
    return whole;
  }
};

// The images one after the other; rows of Out and Index grow.
template <typename T>
struct NmsResult {
  std::vector<T> rows;
  std::vector<int32_t> index;
  std::vector<uint64_t> offsets = {0};

  void Add(const NmsImage<T>& image, const T* boxes,
           const std::vector<Detection<T>>& found) {
    for (const Detection<T>& d : found) {
      rows.push_back(static_cast<T>(d.label));
      rows.push_back(d.score);
      const int64_t place = image.Place(d.label, d.at);
      rows.insert(rows.end(), boxes + place * image.size,
                  boxes + (place + 1) * image.size);
      index.push_back(static_cast<int32_t>(image.first_index + place));
    }
    offsets.push_back(offsets.back() + found.size());
  }
};

struct NmsTensors {
  Tensor *boxes, *scores, *counts, *out, *index, *number;
  bool has_index = false;  // the op's schema
};

absl::StatusOr<std::vector<int64_t>> ImageStarts(const NmsTensors& t) {
  if (t.scores->rank() == 2) return RowOffsets("BBoxes", *t.boxes, t.counts);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i <= t.scores->dim(0); ++i) starts.push_back(i);
  return starts;
}

template <typename T>
absl::Status RunNms(const NmsTensors& t, const NmsOptions& options) {
  const bool own = t.scores->rank() == 2;
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, ImageStarts(t));
  NmsResult<T> result;
  NmsImage<T> image;
  image.own_boxes = own;
  image.classes = t.scores->dim(1);
  image.size = t.boxes->dim(2);
  Merged<T> merged;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    image.n = own ? starts[i + 1] - starts[i] : t.scores->dim(2);
    const int64_t first =
        own ? starts[i] * image.classes : static_cast<int64_t>(i) * image.n;
    image.first_index = first;
    image.boxes = t.boxes->data<T>() + first * image.size;
    image.scores = t.scores->data<T>() + (own ? first : first * image.classes);
    std::vector<Detection<T>> found =
        options.merges ? merged.Detect(image, options) : Detect(image, options);
    KeepBest(options.keep, own, &found);
    result.Add(image, options.merges ? merged.boxes.data() : image.boxes,
               found);
  }
  const auto n = static_cast<int64_t>(result.index.size());
  const bool none = n == 0 && !t.has_index;
  if (none) {
    PD_RETURN_IF_ERROR(t.out->Resize(t.scores->dtype(), {1, 1}));
    t.out->data<T>()[0] = T(-1);
    result.offsets = {0, 1};
  } else {
    PD_RETURN_IF_ERROR(t.out->Resize(t.scores->dtype(), {n, image.size + 2}));
    std::copy(result.rows.begin(), result.rows.end(), t.out->data<T>());
  }
  if (t.index != nullptr) {
    PD_RETURN_IF_ERROR(t.index->Resize(DType::kInt32, {n, 1}));
    std::copy(result.index.begin(), result.index.end(),
              t.index->data<int32_t>());
  }
  t.out->set_lod({result.offsets});
  if (t.index != nullptr) t.index->set_lod({result.offsets});
  if (t.number != nullptr) {
    const size_t images = starts.size() - 1;
    PD_RETURN_IF_ERROR(
        t.number->Resize(DType::kInt32, {static_cast<int64_t>(images)}));
    for (size_t i = 0; i < images; ++i)
      t.number->data<int32_t>()[i] =
          static_cast<int32_t>(result.offsets[i + 1] - result.offsets[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckMulticlassNmsShapes(const Shape& boxes, const Shape& scores,
                                      bool needs_rank_3) {
  const bool own = scores.size() == 2 && !needs_rank_3;
  if (boxes.size() != 3 || (scores.size() != 3 && !own))
    return InvalidArgument("'BBoxes' has shape %s and 'Scores' %s",
                           ToString(boxes), ToString(scores));
  const int64_t size = boxes[2];
  if (size >= 0 && size != 4 &&
      (own || (size != 8 && size != 16 && size != 24 && size != 32)))
    return InvalidArgument("a box of 'BBoxes' has %d numbers; expected 4%s",
                           size, own ? "" : ", 8, 16, 24 or 32");
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (own ? differ(boxes[0], scores[0]) || differ(boxes[1], scores[1])
          : differ(boxes[0], scores[0]) || differ(boxes[1], scores[2]))
    return InvalidArgument("'BBoxes' has shape %s; 'Scores' has %s",
                           ToString(boxes), ToString(scores));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMulticlassNms(BindContext* context) {
  const std::string& type = context->op().type;
  NmsOptions options;
  options.merges = type == "locality_aware_nms";
  NmsTensors t;
  t.boxes = context->Input("BBoxes");
  t.scores = context->Input("Scores");
  t.counts = context->Input("RoisNum");
  t.out = context->Output("Out");
  t.index = context->Output("Index");
  t.number = context->Output("NmsRoisNum");
  t.has_index = type == "multiclass_nms2" || type == "multiclass_nms3";
  PD_RETURN_IF_ERROR(CheckMulticlassNmsShapes(
      t.boxes->shape(), t.scores->shape(), options.merges));
  if (t.boxes->dtype() != t.scores->dtype())
    return InvalidArgument("'BBoxes' is %s; 'Scores' is %s",
                           Name(t.boxes->dtype()), Name(t.scores->dtype()));
  options.background = context->Attr<int32_t>("background_label");
  options.score_threshold = context->Attr<float>("score_threshold");
  options.threshold = context->Attr<float>("nms_threshold");
  options.eta = context->Attr<float>("nms_eta");
  options.top_k = context->Attr<int32_t>("nms_top_k");
  options.keep = context->Attr<int32_t>("keep_top_k");
  options.normalized = context->Attr<bool>("normalized");
  options.keeps_empty = context->op().AttrOr(kNmsEmptyBoxes, false);
  return DispatchFloat(
      t.scores->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step(
            [t, options](const RunContext&) { return RunNms<T>(t, options); });
      });
}

absl::Status InferMulticlassNms(InferContext* context) {
  const TensorMeta& boxes = context->Input("BBoxes");
  const TensorMeta& scores = context->Input("Scores");
  PD_RETURN_IF_ERROR(CheckMulticlassNmsShapes(
      boxes.shape, scores.shape, context->op().type == "locality_aware_nms"));
  TensorMeta out;
  out.dtype = scores.dtype;
  out.shape = {-1, boxes.shape[2] < 0 ? -1 : boxes.shape[2] + 2};
  out.lod_level = 1;
  context->SetOutput("Out", out);
  out.dtype = DType::kInt32;
  out.shape = {-1, 1};
  context->SetOutput("Index", out);
  const int64_t images = scores.shape.size() == 3 ? scores.shape[0]
                         : context->HasInput("RoisNum") &&
                                 context->Input("RoisNum").shape.size() == 1
                             ? context->Input("RoisNum").shape[0]
                             : -1;
  context->SetOutput("NmsRoisNum", {images}, DType::kInt32);
  return absl::OkStatus();
}

OpDef NmsOp(absl::string_view type, int32_t background) {
  OpDef op(type);
  op.Input("BBoxes").Input("Scores").Output("Out");
  op.Attr("background_label", background).Attr("normalized", true);
  op.RequiredAttr("score_threshold", AttrType::kFloat);
  op.RequiredAttr("nms_top_k", AttrType::kInt);
  op.RequiredAttr("keep_top_k", AttrType::kInt);
  op.Attr("nms_threshold", 0.3f).Attr("nms_eta", 1.0f);
  op.ShapeFromData()
      .Infer(InferMulticlassNms)
      .NoGrad()
      .Reference(BindMulticlassNms);
  return op;
}

}  // namespace

absl::Status RegisterMulticlassNms(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(registry->Add(NmsOp("multiclass_nms", 0)));
  PD_RETURN_IF_ERROR(registry->Add(NmsOp("locality_aware_nms", -1)));

  OpDef second = NmsOp("multiclass_nms2", 0);
  second.IntermediateOutput("Index");
  PD_RETURN_IF_ERROR(registry->Add(std::move(second)));

  OpDef third = NmsOp("multiclass_nms3", 0);
  third.OptionalInput("RoisNum").Output("Index").OptionalOutput("NmsRoisNum");
  return registry->Add(std::move(third));
}

}  // namespace pd
