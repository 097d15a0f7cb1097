// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics/values.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::string SpecText(const TensorSpec& spec) {
  return absl::StrCat(Name(spec.dtype), ToString(spec.shape));
}

bool IsScore(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

absl::Status WrongType(MetricSlot slot, const TensorSpec& spec,
                       absl::string_view wanted) {
  return InvalidArgument("the %s are %s; expected %s", NameOf(slot),
                         SpecText(spec), wanted);
}

// The shape of the labels: that of the scores without the axis of classes.
Shape Without(Shape shape, int axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}

}  // namespace

absl::Status CheckScoreType(MetricSlot slot, const TensorSpec& spec) {
  return IsScore(spec.dtype) ? absl::OkStatus()
                             : WrongType(slot, spec, "float32 or float64");
}

absl::Status CheckNumberType(MetricSlot slot, const TensorSpec& spec) {
  return IsScore(spec.dtype) || IsInteger(spec.dtype)
             ? absl::OkStatus()
             : WrongType(slot, spec, "float32, float64 or integers");
}

absl::Status CheckIdType(MetricSlot slot, const TensorSpec& spec) {
  return IsInteger(spec.dtype) ? absl::OkStatus()
                               : WrongType(slot, spec, "integers");
}

absl::StatusOr<int64_t> IdAt(const Tensor& ids, int64_t i) {
  if (ids.dtype() == DType::kInt64) return ids.data<int64_t>()[i];
  const double value = Numbers(ids)[i];
  if (!(value >= -0x1p53 && value <= 0x1p53) || value != std::floor(value))
    return InvalidArgument("element %d is %g; expected an integer", i, value);
  return static_cast<int64_t>(value);
}

bool SameButOnes(const Shape& a, const Shape& b) {
  size_t i = 0, j = 0;
  bool open = false;  // -1 may be 1, so ranks may differ around it
  for (const Shape* shape : {&a, &b})
    for (size_t k = 1; k < shape->size(); ++k) open |= (*shape)[k] < 0;
  if (open && a.size() != b.size()) return true;
  for (;;) {
    while (i < a.size() && a[i] == 1) ++i;
    while (j < b.size() && b[j] == 1) ++j;
    if (i == a.size() || j == b.size()) break;
    if (a[i] >= 0 && b[j] >= 0 && a[i] != b[j]) return false;
    ++i, ++j;
  }
  // Extents left over in one shape must be 1, or unknown.
  for (; i < a.size(); ++i)
    if (a[i] > 1) return false;
  for (; j < b.size(); ++j)
    if (b[j] > 1) return false;
  return true;
}

absl::Status LabelsDoNotFit(const TensorSpec& input, const TensorSpec& label,
                            absl::string_view wanted) {
  return InvalidArgument("the labels are %s; predictions %s need %s",
                         SpecText(label), SpecText(input), wanted);
}

absl::StatusOr<RowLengths> RowLengths::Of(const Tensor* lengths,
                                          const Shape& shape) {
  RowLengths rows;
  if (shape.size() > 1) rows.width_ = shape[1];
  if (lengths == nullptr) return rows;
  if (shape.size() > 2) rows.inner_ = NumElements(shape, 2, shape.size());
  rows.row_ = rows.width_ * rows.inner_;
  for (int64_t i = 0; i < lengths->size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int64_t length, IdAt(*lengths, i));
    if (length < 0 || length > rows.width_)
      return OutOfRange("length %d of record %d is not in [0, %d]", length, i,
                        rows.width_);
    rows.lengths_.push_back(length);
  }
  return rows;
}

absl::Status CheckLengths(const MetricSpecs& specs, MetricSlot slot) {
  if (!specs[slot].has_value()) return absl::OkStatus();
  const TensorSpec& lengths = *specs[slot];
  PD_RETURN_IF_ERROR(CheckIdType(slot, lengths));
  const MetricSlot of = slot == MetricSlot::kInputLength ? MetricSlot::kInput
                                                         : MetricSlot::kLabel;
  int64_t elements = 1;
  for (size_t i = 1; i < lengths.shape.size(); ++i)
    elements *= lengths.shape[i];
  if (lengths.shape.empty() || (elements >= 0 && elements != 1))
    return InvalidArgument("the %s are %s; expected one for each record",
                           NameOf(slot), SpecText(lengths));
  if (specs[of].has_value() && specs[of]->shape.size() < 2)
    return InvalidArgument(
        "there are %s, but the %s are %s without a second "
        "axis",
        NameOf(slot), NameOf(of), SpecText(*specs[of]));
  return absl::OkStatus();
}

absl::StatusOr<ClassAxis> ClassAxis::Of(const Shape& shape, int axis) {
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, shape.size()));
  const auto k = static_cast<size_t>(at);
  ClassAxis result;
  result.outer = NumElements(shape, 0, k);
  result.classes = shape[k];
  result.inner = NumElements(shape, k + 1, shape.size());
  return result;
}

absl::StatusOr<int64_t> BestClass(const Tensor& scores, const ClassAxis& axis,
                                  int64_t position) {
  const Numbers numbers(scores);
  int64_t best = 0;
  double largest = 0;
  for (int64_t c = 0; c < axis.classes; ++c) {
    const double score = numbers[axis.At(position, c)];
    if (std::isnan(score))
      return FailedPrecondition("the score of class %d at position %d is nan",
                                c, position);
    if (c > 0 && score <= largest) continue;
    best = c;
    largest = score;
  }
  return best;
}

absl::Status CheckClasses(const MetricSpecs& specs, int axis, bool one_hot) {
  const TensorSpec& input = *specs[MetricSlot::kInput];
  PD_RETURN_IF_ERROR(CheckScoreType(MetricSlot::kInput, input));
  if (input.shape.size() < 2)
    return InvalidArgument(
        "the predictions are %s; expected scores of classes, [N, classes] or "
        "of a higher rank",
        SpecText(input));
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.shape.size()));
  if (at == 0)
    return InvalidArgument("the axis of classes is %d, that of the records",
                           axis);
  PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
  if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
  const TensorSpec& label = *specs[MetricSlot::kLabel];
  const Shape wanted = Without(input.shape, at);
  PD_RETURN_IF_ERROR(CheckNumberType(MetricSlot::kLabel, label));
  if (one_hot && label.shape.size() == input.shape.size() &&
      label.shape[static_cast<size_t>(at)] ==
          input.shape[static_cast<size_t>(at)] &&
      SameButOnes(label.shape, input.shape))
    return absl::OkStatus();
  if (!SameButOnes(label.shape, wanted))
    return LabelsDoNotFit(input, label,
                          absl::StrCat("integers ", ToString(wanted)));
  return CheckIdType(MetricSlot::kLabel, label);
}

absl::StatusOr<ClassLabels> ClassLabels::Of(const MetricBatch& batch, int axis,
                                            int64_t ignore_index, bool binary) {
  const Tensor& input = *batch[MetricSlot::kInput];
  ClassLabels labels;
  labels.label_ = batch[MetricSlot::kLabel];
  labels.ignore_index_ = ignore_index;
  PD_ASSIGN_OR_RETURN(labels.axis_, ClassAxis::Of(input.shape(), axis));
  labels.classes_ =
      binary && labels.axis_.classes == 1 ? 2 : labels.axis_.classes;
  labels.one_hot_ =
      labels.label_->size() == input.size() && labels.axis_.classes > 1;
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.rank()));
  PD_ASSIGN_OR_RETURN(labels.rows_, RowLengths::Of(batch[MetricSlot::kLength],
                                                   Without(input.shape(), at)));
  return labels;
}

absl::StatusOr<int64_t> ClassLabels::At(int64_t position) const {
  if (!rows_.Counts(position)) return -1;
  if (one_hot_) return BestClass(*label_, axis_, position);
  PD_ASSIGN_OR_RETURN(const int64_t id, IdAt(*label_, position));
  if (id == ignore_index_) return -1;
  if (id < 0 || id >= classes_)
    return OutOfRange("label %d at position %d is not in [0, %d)", id, position,
                      classes_);
  return id;
}

}  // namespace pd
