// SPDX-License-Identifier: Apache-2.0
// paddle.metric.Accuracy: the share of positions whose class is among the k
// likeliest. Of equal scores the smaller class number comes first; a NaN score
// is never right. Of not too many classes it keeps a confusion matrix too.
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/confusion.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

class AccuracyMetric : public Metric {
 public:
  AccuracyMetric(const job::Accuracy& p, ResultNames names)
      : Metric(std::move(names)),
        p_(p),
        topk_(p.topk().begin(), p.topk().end()) {
    if (topk_.empty()) topk_.push_back(1);
    Reset();
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    PD_RETURN_IF_ERROR(CheckClasses(specs, p_.axis(), /*one_hot=*/true));
    PD_ASSIGN_OR_RETURN(
        const ClassAxis axis,
        ClassAxis::Of(specs[MetricSlot::kInput]->shape, p_.axis()));
    if (axis.classes == 1)
      return InvalidArgument(
          "the predictions have 1 class, which is always right; for one "
          "probability there are precision, recall, f1 and confusion_matrix");
    for (int k : topk_)
      if (axis.classes >= 0 && k > axis.classes)
        return InvalidArgument("'topk' is %d; there are %d classes", k,
                               axis.classes);
    return absl::OkStatus();
  }

  const ConfusionMatrix* Table() const override { return &table_; }

  void Reset() override {
    table_.Reset();
    hits_.assign(topk_.size(), 0);
    count_ = 0;
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& scores = *batch[MetricSlot::kInput];
    PD_ASSIGN_OR_RETURN(const ClassLabels labels,
                        ClassLabels::Of(batch, p_.axis(), p_.ignore_index()));
    const Numbers numbers(scores);
    const bool table = labels.axis().classes <= kMostInTable;
    if (table) PD_RETURN_IF_ERROR(table_.SetClasses(labels.axis().classes));
    for (int64_t i = 0; i < labels.axis().positions(); ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t truth, labels.At(i));
      if (truth < 0) continue;
      ++count_;
      const double own = numbers[labels.axis().At(i, truth)];
      if (std::isnan(own)) continue;
      // How many classes come before the right one.
      int64_t rank = 0, best = 0;
      double largest = numbers[labels.axis().At(i, 0)];
      for (int64_t c = 0; c < labels.axis().classes; ++c) {
        const double score = numbers[labels.axis().At(i, c)];
        rank += score > own || (score == own && c < truth);
        if (score > largest) largest = score, best = c;
      }
      if (table) table_.Add(truth, best, 1);
      for (size_t k = 0; k < topk_.size(); ++k) hits_[k] += rank < topk_[k];
    }
    return absl::OkStatus();
  }

  std::vector<double> Values() const override {
    std::vector<double> values;
    for (int64_t hits : hits_)
      values.push_back(count_ > 0 ? static_cast<double>(hits) /
                                        static_cast<double>(count_)
                                  : std::numeric_limits<double>::quiet_NaN());
    return values;
  }

  static constexpr int64_t kMostInTable = 1000;

  const job::Accuracy p_;
  std::vector<int> topk_;
  std::vector<int64_t> hits_;
  int64_t count_ = 0;
  ConfusionMatrix table_;
};

}  // namespace

MetricPtr MakeAccuracy(const job::Metric& metric, ResultNames names) {
  return std::make_unique<AccuracyMetric>(metric.accuracy(), std::move(names));
}

}  // namespace pd
