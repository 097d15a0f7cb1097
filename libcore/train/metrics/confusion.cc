// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics/confusion.h"

#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

// The predicted class; a probability is class 1 from 0.5 on.
absl::StatusOr<int64_t> Predicted(const Tensor& scores, const ClassAxis& axis,
                                  int64_t position) {
  PD_ASSIGN_OR_RETURN(const int64_t best, BestClass(scores, axis, position));
  if (axis.classes > 1) return best;
  return Numbers(scores)[axis.At(position, 0)] >= 0.5 ? int64_t{1} : int64_t{0};
}

class ConfusionMetric : public Metric {
 public:
  explicit ConfusionMetric(const job::ConfusionMatrix& p)
      : Metric({}), p_(p), matrix_(p.axis(), p.ignore_index()) {}

  absl::Status Check(const MetricSpecs& specs) const override {
    return CheckClasses(specs, p_.axis(), /*one_hot=*/true);
  }
  void Reset() override { matrix_.Reset(); }
  const ConfusionMatrix* Table() const override { return &matrix_; }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    return matrix_.Update(batch);
  }
  std::vector<double> Values() const override { return {}; }

  const job::ConfusionMatrix p_;
  ConfusionMatrix matrix_;
};

}  // namespace

absl::Status ConfusionMatrix::SetClasses(int64_t classes) {
  if (classes_ == classes && !counts_.empty()) return absl::OkStatus();
  if (classes_ != 0)
    return InvalidArgument(
        "there are %d classes; there were %d in the batch "
        "before",
        classes, classes_);
  if (classes > kMostClasses)
    return InvalidArgument("there are %d classes; a confusion matrix takes %d",
                           classes, kMostClasses);
  classes_ = classes;
  counts_.assign(static_cast<size_t>(classes * classes), 0);
  return absl::OkStatus();
}

absl::Status ConfusionMatrix::Update(const MetricBatch& batch) {
  PD_ASSIGN_OR_RETURN(
      const ClassLabels labels,
      ClassLabels::Of(batch, axis_, ignore_index_, /*binary=*/true));
  const ClassAxis& axis = labels.axis();
  PD_RETURN_IF_ERROR(SetClasses(axis.classes == 1 ? 2 : axis.classes));
  for (int64_t p = 0; p < axis.positions(); ++p) {
    PD_ASSIGN_OR_RETURN(const int64_t truth, labels.At(p));
    if (truth < 0) continue;
    PD_ASSIGN_OR_RETURN(const int64_t predicted,
                        Predicted(*batch[MetricSlot::kInput], axis, p));
    Add(truth, predicted, 1);
  }
  return absl::OkStatus();
}

void ConfusionMatrix::Reset() {
  classes_ = 0;
  counts_.clear();
}

int64_t ConfusionMatrix::Truths(int64_t truth) const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes_; ++c) sum += at(truth, c);
  return sum;
}

int64_t ConfusionMatrix::Predictions(int64_t predicted) const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes_; ++c) sum += at(c, predicted);
  return sum;
}

MetricPtr MakeConfusionMatrix(const job::Metric& metric) {
  return std::make_unique<ConfusionMetric>(metric.confusion_matrix());
}

}  // namespace pd
