// SPDX-License-Identifier: Apache-2.0
// How metrics read tensors: numbers of any dtype, positions that are not
// padding, classes along an axis. Internal to the metrics.
#ifndef PD_LIBCORE_TRAIN_METRICS_VALUES_H_
#define PD_LIBCORE_TRAIN_METRICS_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/train/metrics.h"

namespace pd {

/// Reads a tensor's elements as doubles. The branch is on the dtype, which is
/// the same for all.
class Numbers {
 public:
  explicit Numbers(const Tensor& tensor) : tensor_(&tensor) {}
  double operator[](int64_t i) const {
    switch (tensor_->dtype()) {
      case DType::kFloat32:
        return static_cast<double>(tensor_->data<float>()[i]);
      case DType::kFloat64:
        return tensor_->data<double>()[i];
      case DType::kInt64:
        return static_cast<double>(tensor_->data<int64_t>()[i]);
      case DType::kInt32:
        return static_cast<double>(tensor_->data<int32_t>()[i]);
      case DType::kInt16:
        return static_cast<double>(tensor_->data<int16_t>()[i]);
      case DType::kInt8:
        return static_cast<double>(tensor_->data<int8_t>()[i]);
      default:
        return static_cast<double>(tensor_->data<uint8_t>()[i]);
    }
  }

 private:
  const Tensor* tensor_;
};

/// OK for float32 and float64; for those and integers.
absl::Status CheckScoreType(MetricSlot slot, const TensorSpec& spec);
absl::Status CheckNumberType(MetricSlot slot, const TensorSpec& spec);
/// OK for integers.
absl::Status CheckIdType(MetricSlot slot, const TensorSpec& spec);

/// Element `i` of an integer tensor, or of one of floats that are whole: NaN
/// and fractions are InvalidArgument.
absl::StatusOr<int64_t> IdAt(const Tensor& ids, int64_t i);

/// Whether shapes may be the same, extents of 1 aside ([N] and [N, 1]).
bool SameButOnes(const Shape& a, const Shape& b);
/// InvalidArgument "the labels are int64[4, 2]; float32[4, 3] of predictions
/// need WANTED".
absl::Status LabelsDoNotFit(const TensorSpec& input, const TensorSpec& label,
                            absl::string_view wanted);

/// Lengths of the rows of a tensor whose shape begins with [N, T].
class RowLengths {
 public:
  /// Without lengths every position counts. OutOfRange on a length above T.
  static absl::StatusOr<RowLengths> Of(const Tensor* lengths,
                                       const Shape& shape);
  /// Whether element `i` is no padding.
  bool Counts(int64_t i) const {
    return lengths_.empty() ||
           i / inner_ % width_ < lengths_[static_cast<size_t>(i / row_)];
  }
  /// How many positions of row `n` count.
  int64_t Length(int64_t n) const {
    return lengths_.empty() ? width_ : lengths_[static_cast<size_t>(n)];
  }

 private:
  std::vector<int64_t> lengths_;
  int64_t row_ = 1, inner_ = 1, width_ = 1;
};
/// Lengths are integers, one for each record.
absl::Status CheckLengths(const MetricSpecs& specs, MetricSlot slot);

/// Scores of classes along an axis: element (o, c, i) is at
/// (o * classes + c) * inner + i, the label of position p = o * inner + i at p.
struct ClassAxis {
  int64_t outer = 0, classes = 0, inner = 1;

  static absl::StatusOr<ClassAxis> Of(const Shape& shape, int axis);
  int64_t positions() const { return outer * inner; }
  int64_t At(int64_t position, int64_t c) const {
    return (position / inner * classes + c) * inner + position % inner;
  }
};

/// The class with the largest score, the first of equal ones.
/// FailedPrecondition when one is NaN.
absl::StatusOr<int64_t> BestClass(const Tensor& scores, const ClassAxis& axis,
                                  int64_t position);

/// OK when predictions are floats with an axis of classes and labels are class
/// numbers without it (or with 1 there), or, with `one_hot`, a number for each
/// class.
absl::Status CheckClasses(const MetricSpecs& specs, int axis, bool one_hot);

/// The labels that CheckClasses accepts, position by position.
class ClassLabels {
 public:
  /// `binary`: one class is a probability, whose labels are 0 and 1.
  static absl::StatusOr<ClassLabels> Of(const MetricBatch& batch, int axis,
                                        int64_t ignore_index,
                                        bool binary = false);
  const ClassAxis& axis() const { return axis_; }
  /// The class number, or -1 for what does not count. OutOfRange names the
  /// position.
  absl::StatusOr<int64_t> At(int64_t position) const;

 private:
  const Tensor* label_ = nullptr;
  ClassAxis axis_;
  RowLengths rows_;
  bool one_hot_ = false;
  int64_t ignore_index_ = 0, classes_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_VALUES_H_
