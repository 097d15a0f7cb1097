// SPDX-License-Identifier: Apache-2.0
// matrix_nms (Wang et al. 2020): no box is dropped for its overlaps; instead
// its score decays by the least of f(iou) / f(most of the other box's own) over
// the better boxes, f linear (1 - iou) or Gaussian exp(-sigma iou^2). What
// scores above post_threshold stays, the best keep_top_k of all classes.
// nms: the boxes, best first, that overlap none kept before by more than
// iou_threshold. No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/detection/boxes.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct MatrixNmsOptions {
  float score_threshold = 0, post_threshold = 0, sigma = 2;
  int64_t top_k = -1, keep = -1, background = 0;
  bool gaussian = false, normalized = true;
};

template <typename T>
struct Found {
  int64_t label, at;
  T score;
};

// One class of one image.
template <typename T>
void DecayClass(const T* boxes, const T* scores, const Shape& extents,
                const MatrixNmsOptions& options, int64_t label,
                std::vector<Found<T>>* found) {
  const int64_t n = extents[0], size = extents[1];
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i)
    if (scores[i] > static_cast<T>(options.score_threshold)) order.push_back(i);
  auto count = static_cast<int64_t>(order.size());
  if (options.top_k >= 0) count = std::min(count, options.top_k);
  if (count == 0) return;
  std::partial_sort(
      order.begin(), order.begin() + count, order.end(),
      [scores](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<T> most(static_cast<size_t>(count), T(0));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = order[static_cast<size_t>(i)];
    T decay = T(1);
    for (int64_t j = 0; j < i; ++j) {
      const T iou = BoxOverlap(boxes + at * size,
                               boxes + order[static_cast<size_t>(j)] * size,
                               options.normalized);
      T& own = most[static_cast<size_t>(i)];
      own = std::max(own, iou);
      const T other = most[static_cast<size_t>(j)];
      decay = std::min(decay, options.gaussian
                                  ? std::exp((other * other - iou * iou) *
                                             static_cast<T>(options.sigma))
                                  : (T(1) - iou) / (T(1) - other));
    }
    const T score = i == 0 ? scores[at] : decay * scores[at];
    if (score > static_cast<T>(options.post_threshold))
      found->push_back({label, at, score});
  }
}

template <typename T>
std::vector<Found<T>> DecayImage(const T* boxes, const T* scores,
                                 const Shape& extents, int64_t classes,
                                 const MatrixNmsOptions& options) {
  std::vector<Found<T>> found;
  for (int64_t label = 0; label < classes; ++label)
    if (label != options.background)
      DecayClass(boxes, scores + label * extents[0], extents, options, label,
                 &found);
  // Ties fall as they do in PaddlePaddle, which orders places.
  std::vector<size_t> order(found.size());
  std::iota(order.begin(), order.end(), size_t{0});
  size_t keep = found.size();
  if (options.keep >= 0)
    keep = std::min(keep, static_cast<size_t>(options.keep));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep),
      order.end(),
      [&](size_t a, size_t b) { return found[a].score > found[b].score; });
  std::vector<Found<T>> best;
  for (size_t i = 0; i < keep; ++i) best.push_back(found[order[i]]);
  return best;
}

absl::Status CheckMatrixShapes(const Shape& boxes, const Shape& scores) {
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (boxes.size() != 3 || scores.size() != 3 || differ(boxes[0], scores[0]) ||
      differ(boxes[1], scores[2]) || differ(boxes[2], 4))
    return InvalidArgument(
        "'BBoxes' has shape %s and 'Scores' %s; expected [n, m, 4] and "
        "[n, classes, m]",
        ToString(boxes), ToString(scores));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMatrixNms(BindContext* context) {
  Tensor* boxes = context->Input("BBoxes");
  Tensor* scores = context->Input("Scores");
  Tensor* out = context->Output("Out");
  Tensor* index = context->Output("Index");
  Tensor* number = context->Output("RoisNum");
  PD_RETURN_IF_ERROR(CheckMatrixShapes(boxes->shape(), scores->shape()));
  if (boxes->dtype() != scores->dtype())
    return InvalidArgument("'BBoxes' is %s; 'Scores' is %s",
                           Name(boxes->dtype()), Name(scores->dtype()));
  MatrixNmsOptions options;
  options.score_threshold = context->Attr<float>("score_threshold");
  options.post_threshold = context->Attr<float>("post_threshold");
  options.sigma = context->Attr<float>("gaussian_sigma");
  options.top_k = context->Attr<int32_t>("nms_top_k");
  options.keep = context->Attr<int32_t>("keep_top_k");
  options.background = context->Attr<int32_t>("background_label");
  options.gaussian = context->Attr<bool>("use_gaussian");
  options.normalized = context->Attr<bool>("normalized");
  return DispatchFloat(scores->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t images = scores->dim(0), classes = scores->dim(1);
      const Shape extents = {boxes->dim(1), boxes->dim(2)};
      std::vector<T> rows;
      std::vector<int32_t> places, counts;
      for (int64_t i = 0; i < images; ++i) {
        const T* own = boxes->data<T>() + i * extents[0] * extents[1];
        const auto best =
            DecayImage(own, scores->data<T>() + i * classes * extents[0],
                       extents, classes, options);
        for (const Found<T>& f : best) {
          rows.push_back(static_cast<T>(f.label));
          rows.push_back(f.score);
          rows.insert(rows.end(), own + f.at * extents[1],
                      own + (f.at + 1) * extents[1]);
          places.push_back(static_cast<int32_t>(i * extents[0] + f.at));
        }
        counts.push_back(static_cast<int32_t>(best.size()));
      }
      const auto n = static_cast<int64_t>(places.size());
      PD_RETURN_IF_ERROR(out->Resize(scores->dtype(), {n, extents[1] + 2}));
      std::copy(rows.begin(), rows.end(), out->data<T>());
      if (index != nullptr) {
        PD_RETURN_IF_ERROR(index->Resize(DType::kInt32, {n, 1}));
        std::copy(places.begin(), places.end(), index->data<int32_t>());
      }
      if (number != nullptr) {
        PD_RETURN_IF_ERROR(number->Resize(DType::kInt32, {images}));
        std::copy(counts.begin(), counts.end(), number->data<int32_t>());
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferMatrixNms(InferContext* context) {
  const TensorMeta& boxes = context->Input("BBoxes");
  const TensorMeta& scores = context->Input("Scores");
  PD_RETURN_IF_ERROR(CheckMatrixShapes(boxes.shape, scores.shape));
  context->SetOutput("Out", {-1, 6}, scores.dtype);
  context->SetOutput("Index", {-1, 1}, DType::kInt32);
  context->SetOutput("RoisNum", {scores.shape[0]}, DType::kInt32);
  return absl::OkStatus();
}

absl::Status CheckNmsBoxes(const Shape& boxes) {
  if (boxes.size() == 2 && (boxes[1] == 4 || boxes[1] < 0))
    return absl::OkStatus();
  return InvalidArgument("'Boxes' has shape %s; expected [-1, 4]",
                         ToString(boxes));
}

// Here a box that is the wrong way round has a negative area.
template <typename T>
bool OverlapsMore(const T* a, const T* b, float threshold) {
  const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const T height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const T common = std::max(width, T(0)) * std::max(height, T(0));
  const T areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
  return common / (areas - common) > static_cast<T>(threshold);
}

absl::StatusOr<Step> BindNms(BindContext* context) {
  Tensor* boxes = context->Input("Boxes");
  Tensor* out = context->Output("KeepBoxesIdxs");
  PD_RETURN_IF_ERROR(CheckNmsBoxes(boxes->shape()));
  const float threshold = context->Attr<float>("iou_threshold");
  return DispatchFloat(boxes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* data = boxes->data<T>();
      std::vector<int64_t> kept;
      for (int64_t i = 0; i < boxes->dim(0); ++i)
        if (std::none_of(kept.begin(), kept.end(), [&](int64_t j) {
              return OverlapsMore(data + j * 4, data + i * 4, threshold);
            }))
          kept.push_back(i);
      PD_RETURN_IF_ERROR(
          out->Resize(DType::kInt64, {static_cast<int64_t>(kept.size())}));
      std::copy(kept.begin(), kept.end(), out->data<int64_t>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferNms(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckNmsBoxes(context->Input("Boxes").shape));
  context->SetOutput("KeepBoxesIdxs", {-1}, DType::kInt64);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMatrixNms(OpRegistry* registry) {
  OpDef nms("nms");
  nms.Input("Boxes").Output("KeepBoxesIdxs").Attr("iou_threshold", 1.0f);
  nms.ShapeFromData().Infer(InferNms).NoGrad().Reference(BindNms);
  PD_RETURN_IF_ERROR(registry->Add(std::move(nms)));

  OpDef op("matrix_nms");
  op.Input("BBoxes").Input("Scores").Output("Out").Output("Index");
  op.OptionalOutput("RoisNum");
  op.RequiredAttr("score_threshold", AttrType::kFloat);
  op.RequiredAttr("nms_top_k", AttrType::kInt);
  op.RequiredAttr("keep_top_k", AttrType::kInt);
  op.Attr("post_threshold", 0.0f).Attr("use_gaussian", false);
  op.Attr("gaussian_sigma", 2.0f).Attr("background_label", int32_t{0});
  op.Attr("normalized", true);
  op.ShapeFromData().Infer(InferMatrixNms).NoGrad().Reference(BindMatrixNms);
  return registry->Add(std::move(op));
}

}  // namespace pd
