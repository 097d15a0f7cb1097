// SPDX-License-Identifier: Apache-2.0
// paddle.metric.Auc: probabilities fall into num_thresholds + 1 bins; ROC is
// the area of the trapezoids between them. PR, which PaddlePaddle names but
// does not compute, is the average precision over the same bins. 0 without
// positive or without negative records.
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

class AucMetric : public Metric {
 public:
  AucMetric(const job::Auc& p, ResultNames names)
      : Metric(std::move(names)), p_(p) {
    Reset();
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    const TensorSpec& input = *specs[MetricSlot::kInput];
    PD_RETURN_IF_ERROR(CheckScoreType(MetricSlot::kInput, input));
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    if (input.shape.size() > 2 ||
        (input.shape.size() == 2 && input.shape[1] > 2))
      return InvalidArgument(
          "the predictions have shape %s; expected probabilities of two "
          "classes, [N, 2] or [N, 1]",
          ToString(input.shape));
    if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
    const TensorSpec& label = *specs[MetricSlot::kLabel];
    PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kLabel, label));
    if (!input.shape.empty() && SameButOnes(label.shape, {input.shape[0]}))
      return absl::OkStatus();
    return LabelsDoNotFit(input, label, "a 0 or 1 for each record");
  }

  void Reset() override {
    positive_.assign(static_cast<size_t>(p_.num_thresholds()) + 1, 0);
    negative_ = positive_;
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& input = *batch[MetricSlot::kInput];
    const Tensor& label = *batch[MetricSlot::kLabel];
    const int64_t width = input.rank() == 2 ? input.dim(1) : 1;
    const Numbers numbers(input);
    for (int64_t i = 0; i < label.size(); ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t truth, IdAt(label, i));
      if (truth != 0 && truth != 1)
        return OutOfRange("label %d of record %d is neither 0 nor 1", truth, i);
      const double value = numbers[i * width + width - 1];
      if (!(value >= 0 && value <= 1))
        return FailedPrecondition(
            "the prediction of record %d is %g; expected a probability, which "
            "a softmax or sigmoid layer gives",
            i, value);
      const auto bin = static_cast<size_t>(value * p_.num_thresholds());
      ++(truth == 1 ? positive_ : negative_)[bin];
    }
    return absl::OkStatus();
  }

  std::vector<double> Values() const override {
    double positive = 0, negative = 0, area = 0;
    for (size_t i = positive_.size(); i-- > 0;) {
      const double hits = positive, misses = negative;
      positive += static_cast<double>(positive_[i]);
      negative += static_cast<double>(negative_[i]);
      if (p_.curve() == job::Auc::ROC)
        area += std::fabs(negative - misses) * (positive + hits) / 2;
      else if (positive > 0)
        area += positive / (positive + negative) * (positive - hits);
    }
    if (positive == 0 || negative == 0) return {0};
    return {p_.curve() == job::Auc::ROC ? area / positive / negative
                                        : area / positive};
  }

  const job::Auc p_;
  std::vector<int64_t> positive_, negative_;  // records by bin
};

}  // namespace

MetricPtr MakeAuc(const job::Metric& metric, ResultNames names) {
  return std::make_unique<AucMetric>(metric.auc(), std::move(names));
}

}  // namespace pd
