// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1. binary is paddle.metric.Precision and Recall: a
// probability p is positive where floor(p + 0.5) is 1, for recall where p
// rounded half to even is 1 (so 0.5 is positive for precision alone). Averages
// over classes are scikit-learn's, 0 where nothing is below the line.
#include <cmath>
#include <map>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/values.h"

namespace pd {
namespace {

struct Counts {
  int64_t hits = 0;       // positive, and said to be
  int64_t predicted = 0;  // said to be positive
  int64_t truths = 0;     // positive
};

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

class PrecisionRecallMetric : public Metric {
 public:
  PrecisionRecallMetric(job::Metric::KindCase kind,
                        const job::PrecisionRecall& p, ResultNames names)
      : Metric(std::move(names)), kind_(kind), p_(p) {}

  absl::Status Check(const MetricSpecs& specs) const override {
    const TensorSpec& input = *specs[MetricSlot::kInput];
    if (!Binary()) return CheckClasses(specs, -1, /*one_hot=*/true);
    PD_RETURN_IF_ERROR(CheckScoreType(MetricSlot::kInput, input));
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
    const bool two = input.shape.size() > 1 && input.shape.back() == 2;
    const TensorSpec& label = *specs[MetricSlot::kLabel];
    PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kLabel, label));
    if (SameButOnes(input.shape, label.shape)) return absl::OkStatus();
    if (two && CheckClasses(specs, -1, false).ok()) return absl::OkStatus();
    return LabelsDoNotFit(input, label,
                          "a 0 or 1 for each; for several classes there are "
                          "the averages macro, micro and weighted");
  }

  void Reset() override { counts_.clear(); }

 private:
  bool Binary() const { return p_.average() == job::PrecisionRecall::binary; }

  absl::Status Count(const MetricBatch& batch) override {
    const Tensor& input = *batch[MetricSlot::kInput];
    if (Binary() && input.size() == batch[MetricSlot::kLabel]->size())
      return CountProbabilities(batch);
    PD_ASSIGN_OR_RETURN(const ClassLabels labels,
                        ClassLabels::Of(batch, -1, p_.ignore_index()));
    for (int64_t i = 0; i < labels.axis().positions(); ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t truth, labels.At(i));
      if (truth < 0) continue;
      PD_ASSIGN_OR_RETURN(const int64_t best,
                          BestClass(input, labels.axis(), i));
      ++counts_[truth].truths;
      ++counts_[best].predicted;
      if (truth == best) ++counts_[truth].hits;
    }
    return absl::OkStatus();
  }

  absl::Status CountProbabilities(const MetricBatch& batch) {
    const Tensor& input = *batch[MetricSlot::kInput];
    const Tensor& label = *batch[MetricSlot::kLabel];
    PD_ASSIGN_OR_RETURN(
        const RowLengths rows,
        RowLengths::Of(batch[MetricSlot::kLength], label.shape()));
    const Numbers numbers(input);
    Counts& positive = counts_[1];
    for (int64_t i = 0; i < input.size(); ++i) {
      if (!rows.Counts(i)) continue;
      PD_ASSIGN_OR_RETURN(const int64_t truth, IdAt(label, i));
      if (truth == p_.ignore_index()) continue;
      if (truth != 0 && truth != 1)
        return OutOfRange("label %d at position %d is neither 0 nor 1", truth,
                          i);
      if (!(numbers[i] >= 0 && numbers[i] <= 1))
        return FailedPrecondition(
            "the prediction at position %d is %g; expected a probability, "
            "which a sigmoid layer gives",
            i, numbers[i]);
      const bool said = Positive(input, i);
      positive.truths += truth;
      positive.predicted += said;
      positive.hits += said && truth == 1;
    }
    return absl::OkStatus();
  }

  // In the predictions' own precision, as NumPy does it.
  bool Positive(const Tensor& input, int64_t i) const {
    const bool even = kind_ == job::Metric::kRecall;
    if (input.dtype() == DType::kFloat64)
      return Rounded(input.data<double>()[i], even) == 1;
    return Rounded(input.data<float>()[i], even) == 1;
  }
  template <typename T>
  static T Rounded(T p, bool even) {
    return even ? std::nearbyint(p) : std::floor(p + T(0.5));
  }

  double Value(const Counts& c) const {
    if (kind_ == job::Metric::kPrecision) return Ratio(c.hits, c.predicted);
    if (kind_ == job::Metric::kRecall) return Ratio(c.hits, c.truths);
    return Ratio(2 * c.hits, c.predicted + c.truths);
  }

  std::vector<double> Values() const override {
    Counts all;
    double sum = 0;
    for (const auto& [label, counts] : counts_) {
      all.hits += counts.hits;
      all.predicted += counts.predicted;
      all.truths += counts.truths;
      sum += Value(counts) * (p_.average() == job::PrecisionRecall::weighted
                                  ? static_cast<double>(counts.truths)
                                  : 1);
    }
    switch (p_.average()) {
      case job::PrecisionRecall::binary: {
        const auto positive = counts_.find(1);
        return {Value(positive == counts_.end() ? Counts() : positive->second)};
      }
      case job::PrecisionRecall::micro:
        return {Value(all)};
      case job::PrecisionRecall::macro:
        return {counts_.empty() ? 0
                                : sum / static_cast<double>(counts_.size())};
      case job::PrecisionRecall::weighted:
        return {all.truths == 0 ? 0 : sum / static_cast<double>(all.truths)};
    }
    return {0};
  }

  const job::Metric::KindCase kind_;
  const job::PrecisionRecall p_;
  std::map<int64_t, Counts> counts_;  // by class
};

}  // namespace

MetricPtr MakePrecisionRecall(const job::Metric& metric, ResultNames names) {
  const job::PrecisionRecall& p = metric.has_precision() ? metric.precision()
                                  : metric.has_recall()  ? metric.recall()
                                                         : metric.f1();
  return std::make_unique<PrecisionRecallMetric>(metric.kind_case(), p,
                                                 std::move(names));
}

}  // namespace pd
