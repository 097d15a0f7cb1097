// SPDX-License-Identifier: Apache-2.0
// Metrics, computed on the host from predictions and labels, one update a
// batch. They are exact: counts are integers, sums of other numbers do not
// depend on their order. The kinds are in libcore/train/metrics/.
#ifndef PD_LIBCORE_TRAIN_METRICS_H_
#define PD_LIBCORE_TRAIN_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class ConfusionMatrix;

/// A result by name; names are what logs and `train.checkpoint.best` say.
using MetricResults = std::vector<std::pair<std::string, double>>;

/// Inputs of a metric. All have the records along their first axis.
enum class MetricSlot {
  kInput,        ///< predictions
  kLabel,        ///< answers
  kLength,       ///< how many positions of a record's label count
  kInputLength,  ///< how many positions of a record's prediction count
  kBox,          ///< true boxes
  kDifficult,    ///< flags of true boxes
};
constexpr size_t kMetricSlots = 6;
/// "predictions", "labels", ...
const char* NameOf(MetricSlot slot);

/// One thing for each slot.
template <typename T>
class BySlot {
 public:
  T& operator[](MetricSlot slot) { return all_[static_cast<size_t>(slot)]; }
  const T& operator[](MetricSlot slot) const {
    return all_[static_cast<size_t>(slot)];
  }

 private:
  std::array<T, kMetricSlots> all_{};
};

/// Type and shape of a tensor before it exists: extents of -1 fit any.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
};
using MetricSpecs = BySlot<std::optional<TensorSpec>>;
/// Row-major tensors of one batch; null where there is none.
using MetricBatch = BySlot<const Tensor*>;

class Metric {
 public:
  /// `names` are those of Values().
  explicit Metric(std::vector<std::string> names) : names_(std::move(names)) {}
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  /// OK when tensors like these can be judged. What is not known yet, be it a
  /// whole label, is not judged. InvalidArgument names the shapes.
  virtual absl::Status Check(const MetricSpecs& specs) const = 0;
  virtual void Reset() = 0;
  /// Checks and counts a batch. OutOfRange on a label that is no class.
  absl::Status Update(const MetricBatch& batch);
  MetricResults Results() const;
  const std::vector<std::string>& names() const { return names_; }
  /// The table of a confusion matrix; else null.
  virtual const ConfusionMatrix* Table() const { return nullptr; }

 protected:
  /// `batch` has passed Check.
  virtual absl::Status Count(const MetricBatch& batch) = 0;
  /// NaN where nothing was counted, save where PaddlePaddle says otherwise.
  virtual std::vector<double> Values() const = 0;

 private:
  std::vector<std::string> names_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_H_
