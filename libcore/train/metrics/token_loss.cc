// SPDX-License-Identifier: Apache-2.0
// Metrics of language models: the mean cross entropy of a token, over
// all tokens of the evaluation set (not a mean of means of batches), as
// perplexity or in bits.
#include <algorithm>
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

class TokenLossMetric : public Metric {
 public:
  TokenLossMetric(bool bits, const job::TokenLoss& p, ResultNames names)
      : Metric(std::move(names)), bits_(bits), p_(p) {}

  absl::Status Check(const MetricSpecs& specs) const override {
    return CheckClasses(specs, p_.axis(), /*one_hot=*/false);
  }

  void Reset() override {
    count_ = 0;
    sum_ = ExactSum();
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    PD_ASSIGN_OR_RETURN(const ClassLabels labels,
                        ClassLabels::Of(batch, p_.axis(), p_.ignore_index()));
    const Numbers scores(*batch[MetricSlot::kInput]);
    for (int64_t i = 0; i < labels.axis().positions(); ++i) {
      PD_ASSIGN_OR_RETURN(const int64_t truth, labels.At(i));
      if (truth < 0) continue;
      ++count_;
      sum_.Add(Loss(scores, labels.axis(), i, truth));
    }
    return absl::OkStatus();
  }

  double Loss(const Numbers& scores, const ClassAxis& axis, int64_t position,
              int64_t truth) const {
    const double own = scores[axis.At(position, truth)];
    if (!p_.use_softmax()) return -std::log(own);
    double largest = own;
    for (int64_t c = 0; c < axis.classes; ++c)
      largest = std::max(largest, scores[axis.At(position, c)]);
    double sum = 0;
    for (int64_t c = 0; c < axis.classes; ++c)
      sum += std::exp(scores[axis.At(position, c)] - largest);
    return std::log(sum) + largest - own;
  }

  std::vector<double> Values() const override {
    if (count_ == 0) return {std::numeric_limits<double>::quiet_NaN()};
    const double mean = sum_.Value() / static_cast<double>(count_);
    return {bits_ ? mean / std::log(2.0) : std::exp(mean)};
  }

  const bool bits_;
  const job::TokenLoss p_;
  int64_t count_ = 0;
  ExactSum sum_;
};

}  // namespace

MetricPtr MakeTokenLoss(const job::Metric& metric, ResultNames names) {
  const bool bits = metric.has_bits_per_character();
  return std::make_unique<TokenLossMetric>(
      bits, bits ? metric.bits_per_character() : metric.perplexity(),
      std::move(names));
}

}  // namespace pd
