// SPDX-License-Identifier: Apache-2.0
// Errors of numbers: mae, mse, rmse and r2, over all elements.
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/exact_sum.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

class RegressionMetric : public Metric {
 public:
  RegressionMetric(job::Metric::KindCase kind, ResultNames names)
      : Metric(std::move(names)), kind_(kind) {}

  absl::Status Check(const MetricSpecs& specs) const override {
    const TensorSpec& input = *specs[MetricSlot::kInput];
    PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kInput, input));
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
    const TensorSpec& label = *specs[MetricSlot::kLabel];
    PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kLabel, label));
    return SameButOnes(input.shape, label.shape)
               ? absl::OkStatus()
               : LabelsDoNotFit(input, label, "the same shape");
  }

  void Reset() override {
    count_ = 0;
    errors_ = labels_ = squares_ = ExactSum();
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& label = *batch[MetricSlot::kLabel];
    PD_ASSIGN_OR_RETURN(
        const RowLengths rows,
        RowLengths::Of(batch[MetricSlot::kLength], label.shape()));
    const Numbers predicted(*batch[MetricSlot::kInput]), wanted(label);
    for (int64_t i = 0; i < label.size(); ++i) {
      if (!rows.Counts(i)) continue;
      ++count_;
      const double error = predicted[i] - wanted[i];
      errors_.Add(kind_ == job::Metric::kMae ? std::fabs(error)
                                             : error * error);
      if (kind_ != job::Metric::kR2) continue;
      labels_.Add(wanted[i]);
      squares_.Add(wanted[i] * wanted[i]);
    }
    return absl::OkStatus();
  }

  std::vector<double> Values() const override {
    const double n = static_cast<double>(count_);
    if (count_ == 0) return {std::numeric_limits<double>::quiet_NaN()};
    const double mean = errors_.Value() / n;
    if (kind_ == job::Metric::kRmse) return {std::sqrt(mean)};
    if (kind_ != job::Metric::kR2) return {mean};
    // Squared deviations from the labels' mean; NaN where all are the same.
    const long double sum = labels_.Value();
    const long double around = squares_.Value() - sum * sum / n;
    if (!(around > 0)) return {std::numeric_limits<double>::quiet_NaN()};
    return {static_cast<double>(1 - errors_.Value() / around)};
  }

  const job::Metric::KindCase kind_;
  int64_t count_ = 0;
  ExactSum errors_, labels_, squares_;
};

}  // namespace

MetricPtr MakeRegression(const job::Metric& metric, ResultNames names) {
  return std::make_unique<RegressionMetric>(metric.kind_case(),
                                            std::move(names));
}

}  // namespace pd
