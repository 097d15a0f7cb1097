// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's mean_iou over the whole evaluation set: for each class the
// positions that are both predicted and right, by those that are either; the
// mean over the classes that occur.
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

class MeanIoUMetric : public Metric {
 public:
  MeanIoUMetric(const job::MeanIoU& p, ResultNames names)
      : Metric(std::move(names)), p_(p) {
    Reset();
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    const TensorSpec& input = *specs[MetricSlot::kInput];
    if (!IsInteger(input.dtype)) {
      PD_RETURN_IF_ERROR(CheckClasses(specs, p_.axis(), /*one_hot=*/false));
      PD_ASSIGN_OR_RETURN(const ClassAxis axis,
                          ClassAxis::Of(input.shape, p_.axis()));
      if (p_.has_num_classes() && axis.classes >= 0 &&
          axis.classes != p_.num_classes())
        return InvalidArgument(
            "'num_classes' is %d; the predictions %s have "
            "%d classes",
            p_.num_classes(), ToString(input.shape), axis.classes);
      return absl::OkStatus();
    }
    if (!p_.has_num_classes())
      return InvalidArgument(
          "the predictions are class numbers; 'num_classes' must say how many "
          "classes there are");
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
    const TensorSpec& label = *specs[MetricSlot::kLabel];
    PD_RETURN_IF_ERROR(CheckIdType(MetricSlot::kLabel, label));
    return SameButOnes(input.shape, label.shape)
               ? absl::OkStatus()
               : LabelsDoNotFit(input, label, "the same shape");
  }

  void Reset() override {
    both_.assign(static_cast<size_t>(p_.num_classes()), 0);
    predicted_ = truths_ = both_;
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& input = *batch[MetricSlot::kInput];
    if (IsInteger(input.dtype())) return CountNumbers(batch);
    PD_ASSIGN_OR_RETURN(const ClassLabels labels,
                        ClassLabels::Of(batch, p_.axis(), p_.ignore_index()));
    if (both_.empty()) {
      both_.assign(static_cast<size_t>(labels.axis().classes), 0);
      predicted_ = truths_ = both_;
    }
    for (int64_t i = 0; i < labels.axis().positions(); ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t truth, labels.At(i));
      if (truth < 0) continue;
      PD_ASSIGN_OR_RETURN(const int64_t best,
                          BestClass(input, labels.axis(), i));
      Add(truth, best);
    }
    return absl::OkStatus();
  }

  absl::Status CountNumbers(const MetricBatch& batch) {
    const Tensor& input = *batch[MetricSlot::kInput];
    const Tensor& label = *batch[MetricSlot::kLabel];
    PD_ASSIGN_OR_RETURN(
        const RowLengths rows,
        RowLengths::Of(batch[MetricSlot::kLength], label.shape()));
    for (int64_t i = 0; i < label.size(); ++i) {
      if (!rows.Counts(i)) continue;
      PD_ASSIGN_OR_RETURN(const int64_t truth, IdAt(label, i));
      if (truth == p_.ignore_index()) continue;
      PD_ASSIGN_OR_RETURN(const int64_t said, IdAt(input, i));
      for (const auto& [what, id] :
           {std::make_pair("label", truth), {"prediction", said}})
        if (id < 0 || id >= p_.num_classes())
          return OutOfRange("%s %d at position %d is not in [0, %d)", what, id,
                            i, p_.num_classes());
      Add(truth, said);
    }
    return absl::OkStatus();
  }

  void Add(int64_t truth, int64_t said) {
    ++truths_[static_cast<size_t>(truth)];
    ++predicted_[static_cast<size_t>(said)];
    if (truth == said) ++both_[static_cast<size_t>(truth)];
  }

  std::vector<double> Values() const override {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> values = {0};
    double sum = 0;
    int64_t count = 0;
    for (size_t c = 0; c < both_.size(); ++c) {
      const int64_t either = truths_[c] + predicted_[c] - both_[c];
      const double iou = either == 0 ? kNaN
                                     : static_cast<double>(both_[c]) /
                                           static_cast<double>(either);
      if (either > 0) sum += iou, ++count;
      if (p_.per_class()) values.push_back(iou);
    }
    values[0] = count == 0 ? kNaN : sum / static_cast<double>(count);
    return values;
  }

  const job::MeanIoU p_;
  std::vector<int64_t> both_, predicted_, truths_;  // by class
};

}  // namespace

MetricPtr MakeMeanIoU(const job::Metric& metric, ResultNames names) {
  return std::make_unique<MeanIoUMetric>(metric.mean_iou(), std::move(names));
}

}  // namespace pd
