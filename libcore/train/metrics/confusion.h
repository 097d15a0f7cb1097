// SPDX-License-Identifier: Apache-2.0
// Counts of (true class, predicted class).
#ifndef PD_LIBCORE_TRAIN_METRICS_CONFUSION_H_
#define PD_LIBCORE_TRAIN_METRICS_CONFUSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "libcore/train/metrics.h"

namespace pd {

class ConfusionMatrix {
 public:
  /// A table of more classes is an error: it would not be read.
  static constexpr int64_t kMostClasses = 4096;

  ConfusionMatrix() = default;
  /// The axis of the classes, and the label that does not count.
  ConfusionMatrix(int axis, int64_t ignore_index)
      : axis_(axis), ignore_index_(ignore_index) {}

  /// Predictions and labels as CheckClasses takes them; probabilities of one
  /// class mean class 1 from 0.5 on. InvalidArgument when the number of classes
  /// is not that of the batches before.
  absl::Status Update(const MetricBatch& batch);
  void Reset();
  /// Classes seen so far; 0 before the first batch.
  int64_t classes() const { return classes_; }
  int64_t at(int64_t truth, int64_t predicted) const {
    return counts_[static_cast<size_t>(truth * classes_ + predicted)];
  }
  void Add(int64_t truth, int64_t predicted, int64_t count) {
    counts_[static_cast<size_t>(truth * classes_ + predicted)] += count;
  }
  /// Begins with so many classes; the same number later changes nothing.
  absl::Status SetClasses(int64_t classes);
  /// Counts of a true class, and of a predicted one.
  int64_t Truths(int64_t truth) const;
  int64_t Predictions(int64_t predicted) const;

 private:
  int axis_ = -1;
  int64_t ignore_index_ = -100;
  int64_t classes_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_CONFUSION_H_
