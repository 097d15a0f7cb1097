// SPDX-License-Identifier: Apache-2.0
// Metrics, computed on the host from predictions and labels, one update a
// batch. They are exact: counts are integers.
#ifndef PD_LIBCORE_TRAIN_METRICS_H_
#define PD_LIBCORE_TRAIN_METRICS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// A result by name; names are what logs and `train.checkpoint.best` say.
using MetricResults = std::vector<std::pair<std::string, double>>;

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void Reset() = 0;
  /// `prediction` and `label` of one batch, row-major. InvalidArgument names
  /// both shapes when they do not fit.
  virtual absl::Status Update(const Tensor& prediction,
                              const Tensor& label) = 0;
  /// NaN where nothing was counted.
  virtual MetricResults Results() const = 0;
};

/// paddle.metric.Accuracy: the share of records whose class is among the k
/// likeliest. Predictions [N, classes] (float32 or float64), labels [N] or
/// [N, 1] (int64). Of equal scores the smaller class number comes first.
class AccuracyMetric : public Metric {
 public:
  /// `name` is "acc" or the user's; results are name, or name_top1, name_top5
  /// where several k are asked for.
  AccuracyMetric(std::string name, std::vector<int> topk);
  void Reset() override;
  absl::Status Update(const Tensor& prediction, const Tensor& label) override;
  MetricResults Results() const override;

 private:
  std::string name_;
  std::vector<int> topk_;
  std::vector<int64_t> hits_;
  int64_t count_ = 0;
};

/// Counts of (true class, predicted class).
class ConfusionMatrix {
 public:
  absl::Status Update(const Tensor& prediction, const Tensor& label);
  /// Classes seen so far: the last extent of the predictions.
  int64_t classes() const { return classes_; }
  int64_t at(int64_t truth, int64_t predicted) const {
    return counts_[static_cast<size_t>(truth * classes_ + predicted)];
  }

 private:
  int64_t classes_ = 0;
  std::vector<int64_t> counts_;
};

/// The number of records in a batch of predictions, after checking that
/// `prediction` is [N, classes] and `label` holds N class numbers.
absl::StatusOr<int64_t> CheckClassification(const Tensor& prediction,
                                            const Tensor& label);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_H_
