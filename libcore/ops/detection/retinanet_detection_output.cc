// SPDX-License-Identifier: Apache-2.0
// RetinaNet's detections (Lin et al. 2017). Of each pyramid level and image the
// nms_top_k best (box, class) scores above score_threshold (0 on the last
// level) are decoded by their anchors, divided by the image's scale and clipped
// to it; classes of all levels are suppressed one by one, and the keep_top_k
// best are left, best first. Out [n, 6] has rows [class + 1, score, box] and
// LoD by image. No gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/nms.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Retina {
  std::vector<Tensor*> boxes, scores, anchors;  // by level
  Tensor *info, *out;
  float score_threshold = 0, threshold = 0, eta = 1;
  int64_t top_k = -1, keep = -1;
};

template <typename T>
struct Prediction {
  T box[4];
  T score;
  int64_t label;
};

template <typename T>
Prediction<T> DecodeRetinanet(const T* delta, const T* anchor, const T* info,
                              T score, int64_t label) {
  Prediction<T> p;
  p.score = score;
  p.label = label;
  for (int k = 0; k < 2; ++k) {
    const T size = anchor[k + 2] - anchor[k] + 1;
    const T centre = delta[k] * size + anchor[k] + size / 2;
    const T extent = std::exp(delta[k + 2]) * size;
    const T last = std::round(info[1 - k] / info[2]) - 1;
    const auto place = [&](T at) {
      return std::max(std::min(at / info[2], last), T(0));
    };
    p.box[k] = place(centre - extent / 2);
    p.box[k + 2] = place(centre + extent / 2 - 1);
  }
  return p;
}

template <typename T>
std::vector<Prediction<T>> DetectImage(const Retina& r, int64_t image) {
  const int64_t classes = r.scores[0]->dim(2);
  const T* info = r.info->data<T>() + image * 3;
  std::vector<std::vector<Prediction<T>>> by_class(
      static_cast<size_t>(classes));
  for (size_t l = 0; l < r.scores.size(); ++l) {
    const int64_t boxes = r.boxes[l]->dim(1);
    const T* deltas = r.boxes[l]->data<T>() + image * boxes * 4;
    const bool is_last = l + 1 == r.scores.size();
    for (const ScoredBox<T>& best : BestBoxes(
             r.scores[l]->data<T>() + image * boxes * classes, boxes * classes,
             is_last ? T(0) : static_cast<T>(r.score_threshold), r.top_k)) {
      const int64_t box = best.at / classes, label = best.at % classes;
      by_class[static_cast<size_t>(label)].push_back(
          DecodeRetinanet(deltas + box * 4, r.anchors[l]->data<T>() + box * 4,
                          info, best.score, label));
    }
  }
  std::vector<Prediction<T>> found;
  for (const auto& own : by_class) {
    std::vector<ScoredBox<T>> order;
    for (size_t i = 0; i < own.size(); ++i)
      order.push_back({own[i].score, static_cast<int64_t>(i)});
    SortByScore(&order);
    for (int64_t i : Suppress(order, 4, static_cast<T>(r.threshold),
                              static_cast<T>(r.eta), false, [&own](int64_t at) {
                                return own[static_cast<size_t>(at)].box;
                              }))
      found.push_back(own[static_cast<size_t>(i)]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Prediction<T>& a, const Prediction<T>& b) {
                     return static_cast<float>(a.score) >
                            static_cast<float>(b.score);
                   });
  if (r.keep >= 0 && r.keep < static_cast<int64_t>(found.size()))
    found.resize(static_cast<size_t>(r.keep));
  return found;
}

template <typename T>
absl::Status RunRetinanet(const Retina& r) {
  std::vector<T> rows;
  std::vector<uint64_t> offsets = {0};
  for (int64_t i = 0; i < r.scores[0]->dim(0); ++i) {
    for (const Prediction<T>& p : DetectImage<T>(r, i)) {
      rows.push_back(static_cast<T>(p.label + 1));
      rows.push_back(p.score);
      rows.insert(rows.end(), p.box, p.box + 4);
    }
    offsets.push_back(rows.size() / 6);
  }
  PD_RETURN_IF_ERROR(r.out->Resize(r.scores[0]->dtype(),
                                   {static_cast<int64_t>(rows.size()) / 6, 6}));
  std::copy(rows.begin(), rows.end(), r.out->data<T>());
  r.out->set_lod({offsets});
  return absl::OkStatus();
}

absl::Status CheckLevel(const Retina& r, size_t l) {
  const Shape& scores = r.scores[l]->shape();
  const Shape& first = r.scores[0]->shape();
  if (scores.size() != 3 || first.size() != 3 || scores[0] != first[0] ||
      scores[2] != first[2] ||
      r.boxes[l]->shape() != Shape({scores[0], scores[1], 4}) ||
      r.anchors[l]->shape() != Shape({scores[1], 4}))
    return InvalidArgument(
        "level %d has 'Scores' %s, 'BBoxes' %s, 'Anchors' %s; expected "
        "[n, m, classes], [n, m, 4], [m, 4]",
        l, ToString(scores), ToString(r.boxes[l]->shape()),
        ToString(r.anchors[l]->shape()));
  for (const Tensor* t : {r.scores[l], r.boxes[l], r.anchors[l]})
    if (t->dtype() != r.scores[0]->dtype())
      return InvalidArgument("level %d holds %s; level 0 has scores of %s", l,
                             Name(t->dtype()), Name(r.scores[0]->dtype()));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRetina(BindContext* context) {
  Retina r;
  for (size_t l = 0; l < context->InputCount("Scores"); ++l) {
    r.scores.push_back(context->Input("Scores", l));
    r.boxes.push_back(context->Input("BBoxes", l));
    r.anchors.push_back(context->Input("Anchors", l));
    PD_RETURN_IF_ERROR(CheckLevel(r, l));
  }
  r.info = context->Input("ImInfo");
  r.out = context->Output("Out");
  r.score_threshold = context->Attr<float>("score_threshold");
  r.threshold = context->Attr<float>("nms_threshold");
  r.eta = context->Attr<float>("nms_eta");
  r.top_k = context->Attr<int32_t>("nms_top_k");
  r.keep = context->Attr<int32_t>("keep_top_k");
  const DType dtype = r.scores[0]->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ImInfo", dtype, Shape{r.scores[0]->dim(0), 3}));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([r](const RunContext&) { return RunRetinanet<T>(r); });
  });
}

absl::Status InferRetina(InferContext* context) {
  const size_t levels = context->InputCount("Scores");
  if (levels == 0 || context->InputCount("BBoxes") != levels ||
      context->InputCount("Anchors") != levels)
    return InvalidArgument(
        "there are %d 'Scores', %d 'BBoxes', %d 'Anchors'; expected one each a "
        "level",
        levels, context->InputCount("BBoxes"), context->InputCount("Anchors"));
  TensorMeta out;
  out.dtype = context->Input("Scores").dtype;
  out.shape = {-1, 6};
  out.lod_level = 1;
  context->SetOutput("Out", out);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterRetinanetDetectionOutput(OpRegistry* registry) {
  OpDef op("retinanet_detection_output");
  op.Inputs("BBoxes").Inputs("Scores").Inputs("Anchors").Input("ImInfo");
  op.Output("Out").RequiredAttr("nms_top_k", AttrType::kInt);
  op.RequiredAttr("keep_top_k", AttrType::kInt);
  for (const char* name : {"score_threshold", "nms_threshold", "nms_eta"})
    op.RequiredAttr(name, AttrType::kFloat);
  op.ShapeFromData().Infer(InferRetina).NoGrad().Reference(BindRetina);
  return registry->Add(std::move(op));
}

}  // namespace pd
