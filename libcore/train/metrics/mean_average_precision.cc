// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's DetectionMAP over padded batches, or COCO's rules (coco.h).
// Two things differ from DetectionMAP's op: a class is left out by its number
// (the op compares background_label with the number of its boxes), and pixels
// are possible (the op cuts at 0 and 1).
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/ops/metric/average_precision.h"
#include "libcore/train/metrics/box_units.h"
#include "libcore/train/metrics/coco.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

namespace ap = average_precision;

bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

class MeanAveragePrecisionMetric : public Metric {
 public:
  MeanAveragePrecisionMetric(const job::MeanAveragePrecision& p,
                             ResultNames names)
      : Metric(std::move(names)), p_(p), coco_(p.max_detections()) {
    options_.threshold = static_cast<float>(p.overlap_threshold());
    options_.difficult = p.evaluate_difficult();
    options_.eleven = p.ap_type() == job::MeanAveragePrecision::eleven_point;
    options_.clip = p.is_bbox_normalized();
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    const TensorSpec& input = *specs[MetricSlot::kInput];
    PD_RETURN_IF_ERROR(CheckScoreType(MetricSlot::kInput, input));
    const size_t rank = input.shape.size();
    if ((rank != 2 && rank != 3) || Differ(input.shape.back(), 6))
      return InvalidArgument(
          "the predictions have shape %s; expected rows of class, score and "
          "box, [N, M, 6] or [rows, 6]",
          ToString(input.shape));
    if (rank == 2 && !specs[MetricSlot::kInputLength].has_value())
      return InvalidArgument(
          "the predictions have shape %s; 'input_length' must say how many "
          "rows each record has (layers as multiclass_nms do as "
          "\"LAYER:rois_num\")",
          ToString(input.shape));
    if (rank == 3)
      PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kInputLength));
    return CheckTruths(specs);
  }

  BoxUnits units() const {
    return {p_.is_bbox_normalized(),
            p_.box_format() == job::MeanAveragePrecision::cxcywh};
  }
  void Reset() override {
    tally_ = ap::Tally<double>();
    coco_ = CocoTally(p_.max_detections());
  }

 private:
  absl::Status CheckTruths(const MetricSpecs& specs) const {
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    const auto& label = specs[MetricSlot::kLabel];
    const auto& box = specs[MetricSlot::kBox];
    const auto& difficult = specs[MetricSlot::kDifficult];
    if (label.has_value()) {
      PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kLabel, *label));
      if (label->shape.size() < 2)
        return InvalidArgument("the labels have shape %s; expected [N, B]",
                               ToString(label->shape));
    }
    if (box.has_value()) {
      PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kBox, *box));
      if (box->shape.size() != 3 || Differ(box->shape[2], 4) ||
          (label.has_value() && Differ(box->shape[1], label->shape[1])))
        return InvalidArgument(
            "the true boxes have shape %s; expected [N, B, 4]%s",
            ToString(box->shape),
            label.has_value() ? " for labels " + ToString(label->shape) : "");
    }
    if (difficult.has_value() && label.has_value() &&
        !SameButOnes(difficult->shape, label->shape))
      return InvalidArgument(
          "the flags of difficult boxes have shape %s; the labels %s",
          ToString(difficult->shape), ToString(label->shape));
    return absl::OkStatus();
  }

  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& label = *batch[MetricSlot::kLabel];
    const Tensor& input = *batch[MetricSlot::kInput];
    PD_ASSIGN_OR_RETURN(const RowLengths truths,
                        RowLengths::Of(batch[MetricSlot::kLength],
                                       {label.dim(0), label.dim(1)}));
    const Tensor* counts = batch[MetricSlot::kInputLength];
    if ((input.rank() == 3 ? input.dim(0) : counts->size()) != label.dim(0))
      return InvalidArgument(
          "there are predictions for %d records and labels "
          "for %d",
          input.rank() == 3 ? input.dim(0) : counts->size(), label.dim(0));
    int64_t row = 0;  // of the predictions
    for (int64_t n = 0; n < label.dim(0); ++n) {
      int64_t rows = input.rank() == 3 ? input.dim(1) : 0;
      if (input.rank() == 3) row = n * rows;
      if (counts != nullptr) {
        PD_ASSIGN_OR_RETURN(rows, IdAt(*counts, n));
      }
      const int64_t most =
          input.rank() == 3 ? input.dim(1) : input.dim(0) - row;
      if (rows < 0 || rows > most)
        return OutOfRange("record %d has %d predictions; there are %d rows", n,
                          rows, most);
      PD_ASSIGN_OR_RETURN(auto found, FoundIn(input, row, rows));
      PD_ASSIGN_OR_RETURN(auto wanted, TruthsOf(batch, n, truths.Length(n)));
      if (IsCoco())
        coco_.AddImage(wanted, found);
      else
        ap::TallyImage(options_, std::move(wanted), found, &tally_);
      row += rows;
    }
    return absl::OkStatus();
  }

  bool IsCoco() const {
    return p_.ap_type() == job::MeanAveragePrecision::coco;
  }

  absl::StatusOr<ap::ByClass<ap::Found<double>>> FoundIn(const Tensor& input,
                                                         int64_t row,
                                                         int64_t rows) const {
    ap::ByClass<ap::Found<double>> found;
    const Numbers numbers(input);
    for (int64_t i = row * 6; i < (row + rows) * 6; i += 6) {
      for (int64_t k = 0; k < 6; ++k)
        if (!std::isfinite(numbers[i + k]))
          return FailedPrecondition("a detected box is %g at row %d, column %d",
                                    numbers[i + k], i / 6, k);
      if (numbers[i] < 0) continue;
      ap::Found<double> one;
      one.score = numbers[i + 1];
      for (int64_t k = 0; k < 4; ++k) {
        one.box[k] = numbers[i + 2 + k];
        if (options_.clip) one.box[k] = std::clamp(one.box[k], 0.0, 1.0);
      }
      found[static_cast<int64_t>(numbers[i])].push_back(one);
    }
    return found;
  }

  absl::StatusOr<ap::ByClass<ap::Truth<double>>> TruthsOf(
      const MetricBatch& batch, int64_t n, int64_t count) const {
    ap::ByClass<ap::Truth<double>> truths;
    const Tensor& label = *batch[MetricSlot::kLabel];
    const Numbers boxes(*batch[MetricSlot::kBox]);
    for (int64_t i = n * label.dim(1); i < n * label.dim(1) + count; ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t id, IdAt(label, i));
      double b[4];
      for (int64_t k = 0; k < 4; ++k) b[k] = boxes[i * 4 + k];
      if (p_.box_format() == job::MeanAveragePrecision::cxcywh) {
        const double width = b[2], height = b[3];
        b[0] -= width / 2, b[1] -= height / 2;
        b[2] = b[0] + width, b[3] = b[1] + height;
      }
      if (id < 0 || !(b[2] > b[0] && b[3] > b[1])) continue;  // padding
      ap::Truth<double> truth;
      std::copy_n(b, 4, truth.box);
      if (batch[MetricSlot::kDifficult] != nullptr)
        truth.difficult = Numbers(*batch[MetricSlot::kDifficult])[i] != 0;
      truths[id].push_back(truth);
    }
    return truths;
  }

  std::vector<double> Values() const override {
    if (IsCoco()) {
      const int64_t background = p_.background_label();
      const CocoResults results =
          coco_.Results(p_.has_background_label() ? &background : nullptr);
      return {results.mean, results.at_50, results.at_75, results.recall};
    }
    ap::Tally<double> tally = tally_;
    int64_t counted = 0;
    const auto skip = [this](int64_t label, int64_t) {
      return p_.has_background_label() && label == p_.background_label();
    };
    const double mean = ap::MeanPrecision(options_, skip, &tally, &counted);
    return {counted == 0 ? std::numeric_limits<double>::quiet_NaN() : mean};
  }

  const job::MeanAveragePrecision p_;
  ap::Options options_;
  ap::Tally<double> tally_;
  CocoTally coco_;
};

}  // namespace

std::optional<BoxUnits> BoxUnitsOf(const Metric& metric) {
  const auto* boxes = dynamic_cast<const MeanAveragePrecisionMetric*>(&metric);
  if (boxes == nullptr) return std::nullopt;
  return boxes->units();
}

MetricPtr MakeMeanAveragePrecision(const job::Metric& metric,
                                   ResultNames names) {
  return std::make_unique<MeanAveragePrecisionMetric>(
      metric.mean_average_precision(), std::move(names));
}

}  // namespace pd
