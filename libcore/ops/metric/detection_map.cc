// SPDX-License-Identifier: Apache-2.0
// Mean average precision of detections, see average_precision.h. DetectRes rows
// [class, score, box], Label rows [class, difficult, box] or [class, box], LoD
// by image; difficult ones count only with evaluate_difficult. MAP [1] is the
// mean over the classes of the area under precision by recall (integral) or of
// the best precision at 11 recalls (11point).
// The Accum outputs carry on: counts of ground truths [class_num, 1], and by
// class (LoD) rows [score, 1 or 0] of true and false ones; PosCount, TruePos,
// FalsePos are such of before, read when HasState is not 0.
// As in PaddlePaddle, a class is left out when its number of ground truths
// equals background_label. No gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/metric/average_precision.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

using average_precision::ByClass;
using average_precision::Found;
using average_precision::Hit;
using average_precision::Tally;
using average_precision::Truth;

struct MapTensors {
  Tensor *detections, *labels, *state, *counts, *hits, *misses;
  Tensor *out_counts, *out_hits, *out_misses, *map;
  int64_t classes = 0, background = 0;
  average_precision::Options options;
};

// NaN and what does not fit become -1.
template <typename T>
int64_t ClassOf(T value) {
  return value > T(-1e9) && value < T(1e9) ? static_cast<int64_t>(value) : -1;
}

template <typename T>
ByClass<Truth<T>> TruthsOf(const Tensor& labels, int64_t begin, int64_t end) {
  const int64_t width = labels.dim(1);
  ByClass<Truth<T>> truths;
  for (int64_t i = begin; i < end; ++i) {
    const T* row = labels.data<T>() + i * width;
    Truth<T> truth;
    truth.difficult = width == 6 && !(std::abs(row[1]) < T(1e-6));
    std::copy_n(row + width - 4, 4, truth.box);
    truths[ClassOf(row[0])].push_back(truth);
  }
  return truths;
}

template <typename T>
ByClass<Found<T>> FoundIn(const Tensor& rows, int64_t begin, int64_t end) {
  ByClass<Found<T>> found;
  for (int64_t i = begin; i < end; ++i) {
    const T* row = rows.data<T>() + i * 6;
    Found<T> one;
    one.score = row[1];
    std::copy_n(row + 2, 4, one.box);
    found[ClassOf(row[0])].push_back(one);
  }
  return found;
}

// Reads what an earlier run left.
template <typename T>
absl::Status ReadHits(const Tensor* rows, absl::string_view slot,
                      ByClass<Hit<T>>* hits) {
  if (rows == nullptr)
    return InvalidArgument("'HasState' is set; '%s' is missing", slot);
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                      RowOffsets(slot, *rows, nullptr));
  if (rows->size() != (rows->rank() == 0 ? 0 : rows->dim(0) * 2) ||
      rows->dtype() != DTypeOf<T>())
    return InvalidArgument("'%s' is %s %s; expected [-1, 2]", slot,
                           Name(rows->dtype()), ToString(rows->shape()));
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    for (int64_t r = starts[i]; r < starts[i + 1]; ++r)
      (*hits)[static_cast<int64_t>(i)].push_back(
          {rows->data<T>()[r * 2],
           static_cast<int32_t>(ClassOf(rows->data<T>()[r * 2 + 1]))});
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadState(const MapTensors& t, Tally<T>* tally) {
  if (t.counts == nullptr || t.state == nullptr || t.state->size() == 0 ||
      t.state->data<int32_t>()[0] == 0)
    return absl::OkStatus();
  if (t.counts->dtype() != DType::kInt32 || t.counts->size() < t.classes)
    return InvalidArgument("'PosCount' is %s %s; there are %d classes",
                           Name(t.counts->dtype()), ToString(t.counts->shape()),
                           t.classes);
  for (int64_t i = 0; i < t.classes; ++i)
    tally->truths[i] = t.counts->data<int32_t>()[i];
  PD_RETURN_IF_ERROR(ReadHits(t.hits, "TruePos", &tally->hits));
  return ReadHits(t.misses, "FalsePos", &tally->misses);
}

template <typename T>
absl::Status WriteHits(const ByClass<Hit<T>>& hits, int64_t classes,
                       Tensor* out) {
  if (out == nullptr) return absl::OkStatus();
  std::vector<T> rows;
  std::vector<uint64_t> offsets = {0};
  for (int64_t i = 0; i < classes; ++i) {
    const auto own = hits.find(i);
    if (own != hits.end())
      for (const Hit<T>& hit : own->second) {
        rows.push_back(hit.score);
        rows.push_back(static_cast<T>(hit.flag));
      }
    offsets.push_back(rows.size() / 2);
  }
  PD_RETURN_IF_ERROR(
      out->Resize(DTypeOf<T>(), {static_cast<int64_t>(rows.size()) / 2, 2}));
  std::copy(rows.begin(), rows.end(), out->data<T>());
  out->set_lod({offsets});
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(const MapTensors& t) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> labels,
                      RowOffsets("Label", *t.labels, nullptr));
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> detections,
                      RowOffsets("DetectRes", *t.detections, nullptr));
  if (labels.size() != detections.size())
    return InvalidArgument("'Label' has %d images; 'DetectRes' has %d",
                           labels.size() - 1, detections.size() - 1);
  Tally<T> tally;
  PD_RETURN_IF_ERROR(ReadState(t, &tally));
  for (size_t i = 0; i + 1 < labels.size(); ++i)
    TallyImage(t.options, TruthsOf<T>(*t.labels, labels[i], labels[i + 1]),
               FoundIn<T>(*t.detections, detections[i], detections[i + 1]),
               &tally);
  int64_t counted = 0;
  const T mean = MeanPrecision(
      t.options,
      [&t](int64_t, int64_t truths) { return truths == t.background; }, &tally,
      &counted);
  if (t.out_counts != nullptr) {
    PD_RETURN_IF_ERROR(t.out_counts->Resize(DType::kInt32, {t.classes, 1}));
    for (int64_t i = 0; i < t.classes; ++i) {
      const auto own = tally.truths.find(i);
      t.out_counts->data<int32_t>()[i] =
          own == tally.truths.end() ? 0 : static_cast<int32_t>(own->second);
    }
  }
  PD_RETURN_IF_ERROR(WriteHits(tally.hits, t.classes, t.out_hits));
  PD_RETURN_IF_ERROR(WriteHits(tally.misses, t.classes, t.out_misses));
  PD_RETURN_IF_ERROR(t.map->Resize(DTypeOf<T>(), {1}));
  t.map->data<T>()[0] = mean;
  return absl::OkStatus();
}

absl::Status CheckRows(const Shape& detections, const Shape& labels) {
  if (detections.size() != 2 || (detections[1] >= 0 && detections[1] != 6))
    return InvalidArgument("'DetectRes' has shape %s; expected [-1, 6]",
                           ToString(detections));
  if (labels.size() != 2 ||
      (labels[1] >= 0 && labels[1] != 5 && labels[1] != 6))
    return InvalidArgument("'Label' has shape %s; expected [-1, 5 or 6]",
                           ToString(labels));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDetectionMap(BindContext* context) {
  MapTensors t;
  t.detections = context->Input("DetectRes");
  t.labels = context->Input("Label");
  t.state = context->Input("HasState");
  t.counts = context->Input("PosCount");
  t.hits = context->Input("TruePos");
  t.misses = context->Input("FalsePos");
  t.out_counts = context->Output("AccumPosCount");
  t.out_hits = context->Output("AccumTruePos");
  t.out_misses = context->Output("AccumFalsePos");
  t.map = context->Output("MAP");
  t.classes = context->Attr<int32_t>("class_num");
  t.background = context->Attr<int32_t>("background_label");
  t.options.threshold = context->Attr<float>("overlap_threshold");
  t.options.difficult = context->Attr<bool>("evaluate_difficult");
  t.options.eleven = context->Attr<std::string>("ap_type") == "11point";
  PD_RETURN_IF_ERROR(CheckRows(t.detections->shape(), t.labels->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Label", t.detections->dtype(), t.labels->shape()));
  if (t.state != nullptr && t.state->dtype() != DType::kInt32)
    return InvalidArgument("'HasState' is %s; expected int32",
                           Name(t.state->dtype()));
  return DispatchFloat(
      t.detections->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([t](const RunContext&) { return Run<T>(t); });
      });
}

absl::Status InferDetectionMap(InferContext* context) {
  const TensorMeta& detections = context->Input("DetectRes");
  PD_RETURN_IF_ERROR(
      CheckRows(detections.shape, context->Input("Label").shape));
  const int64_t classes = context->Attr<int32_t>("class_num");
  if (classes <= 0)
    return InvalidArgument("attr 'class_num' is %d; expected more than 0",
                           classes);
  const auto& type = context->Attr<std::string>("ap_type");
  if (type != "integral" && type != "11point")
    return InvalidArgument("attr 'ap_type' is '%s'", type);
  TensorMeta hits;
  hits.dtype = detections.dtype;
  hits.shape = {-1, 2};
  hits.lod_level = 1;
  context->SetOutput("AccumTruePos", hits);
  context->SetOutput("AccumFalsePos", hits);
  context->SetOutput("AccumPosCount", {classes, 1}, DType::kInt32);
  context->SetOutput("MAP", {1}, detections.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDetectionMap(OpRegistry* registry) {
  OpDef op("detection_map");
  op.Input("DetectRes").Input("Label");
  for (const char* slot : {"HasState", "PosCount", "TruePos", "FalsePos"})
    op.OptionalInput(slot);
  for (const char* slot : {"AccumPosCount", "AccumTruePos", "AccumFalsePos"})
    op.OptionalOutput(slot);
  op.Output("MAP").RequiredAttr("class_num", AttrType::kInt);
  op.Attr("background_label", int32_t{0}).Attr("overlap_threshold", 0.5f);
  op.Attr("evaluate_difficult", true);
  op.Attr("ap_type", std::string("integral")).ShapeFromData();
  op.Infer(InferDetectionMap).NoGrad().Reference(BindDetectionMap);
  return registry->Add(std::move(op));
}

}  // namespace pd
