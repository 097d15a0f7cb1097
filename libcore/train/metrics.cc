// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// How many classes score higher than `label`, or equal with a smaller number.
template <typename T>
int64_t RankOf(const T* scores, int64_t classes, int64_t label) {
  int64_t rank = 0;
  for (int64_t c = 0; c < classes; ++c)
    rank +=
        scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
  return rank;
}

template <typename T>
int64_t ArgMax(const T* scores, int64_t classes) {
  int64_t best = 0;
  for (int64_t c = 1; c < classes; ++c)
    if (scores[c] > scores[best]) best = c;
  return best;
}

// Calls body(record, label, scores) for each record.
template <typename T, typename Body>
absl::Status ForEachRecord(const Tensor& prediction, const Tensor& label,
                           int64_t n, const Body& body) {
  const int64_t classes = prediction.dim(1);
  const int64_t* labels = label.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] < 0 || labels[i] >= classes)
      return OutOfRange("label %d of record %d is not in [0, %d)", labels[i], i,
                        classes);
    body(i, labels[i], prediction.data<T>() + i * classes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> CheckClassification(const Tensor& prediction,
                                            const Tensor& label) {
  if (prediction.rank() != 2)
    return InvalidArgument(
        "predictions have shape %s; class scores are [records, classes]",
        ToString(prediction.shape()));
  const int64_t n = prediction.dim(0);
  if (label.dtype() != DType::kInt64 || label.size() != n)
    return InvalidArgument(
        "labels are %s%s; %s%s of predictions need int64[%d]",
        Name(label.dtype()), ToString(label.shape()), Name(prediction.dtype()),
        ToString(prediction.shape()), n);
  return n;
}

AccuracyMetric::AccuracyMetric(std::string name, std::vector<int> topk)
    : name_(std::move(name)), topk_(std::move(topk)), hits_(topk_.size(), 0) {}

void AccuracyMetric::Reset() {
  hits_.assign(topk_.size(), 0);
  count_ = 0;
}

absl::Status AccuracyMetric::Update(const Tensor& prediction,
                                    const Tensor& label) {
  PD_ASSIGN_OR_RETURN(const int64_t n, CheckClassification(prediction, label));
  count_ += n;
  return DispatchFloat(prediction.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ForEachRecord<T>(
        prediction, label, n, [&](int64_t, int64_t truth, const T* scores) {
          const int64_t rank = RankOf(scores, prediction.dim(1), truth);
          // A NaN score is never right.
          const bool valid = !std::isnan(static_cast<double>(scores[truth]));
          for (size_t k = 0; k < topk_.size(); ++k)
            hits_[k] += valid && rank < topk_[k];
        });
  });
}

MetricResults AccuracyMetric::Results() const {
  MetricResults results;
  for (size_t k = 0; k < topk_.size(); ++k) {
    const std::string name =
        topk_.size() == 1 ? name_ : absl::StrCat(name_, "_top", topk_[k]);
    const double value =
        count_ > 0 ? static_cast<double>(hits_[k]) / static_cast<double>(count_)
                   : std::numeric_limits<double>::quiet_NaN();
    results.emplace_back(name, value);
  }
  return results;
}

absl::Status ConfusionMatrix::Update(const Tensor& prediction,
                                     const Tensor& label) {
  PD_ASSIGN_OR_RETURN(const int64_t n, CheckClassification(prediction, label));
  if (counts_.empty()) {
    classes_ = prediction.dim(1);
    counts_.assign(static_cast<size_t>(classes_ * classes_), 0);
  }
  return DispatchFloat(prediction.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ForEachRecord<T>(
        prediction, label, n, [&](int64_t, int64_t truth, const T* scores) {
          const int64_t predicted = ArgMax(scores, classes_);
          ++counts_[static_cast<size_t>(truth * classes_ + predicted)];
        });
  });
}

}  // namespace pd
