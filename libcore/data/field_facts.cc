// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/field_facts.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// How many values a record has in a field.
size_t Count(const FieldSpec& spec, const FieldView& view) {
  if (spec.is_mask || spec.is_image)
    return static_cast<size_t>(view.height * view.width * view.channels);
  if (!IsDynamic(spec.shape))
    return static_cast<size_t>(NumElements(spec.shape));
  size_t count = 1;
  for (size_t axis = 0; axis < spec.shape.size(); ++axis)
    count *= static_cast<size_t>(view.extents[axis]);
  return count;
}

template <typename T>
absl::StatusOr<int64_t> Largest(const Dataset& dataset, size_t field) {
  const FieldSpec& spec = dataset.fields()[field];
  constexpr int64_t kNobodyKnows = 255;
  int64_t largest = -1;
  Record record;
  for (int64_t r = 0; r < dataset.size(); ++r) {
    PD_RETURN_IF_ERROR(dataset.Read(r, &record));
    const FieldView& view = record.fields[field];
    const T* values = reinterpret_cast<const T*>(view.data);
    for (size_t i = 0; i < Count(spec, view); ++i) {
      const auto value = static_cast<int64_t>(values[i]);
      if (value < 0)
        return OutOfRange("%s: class %d in field '%s'; classes count from 0",
                          dataset.Describe(r), value, spec.name);
      if (!spec.is_mask || value != kNobodyKnows)
        largest = std::max(largest, value);
    }
  }
  return largest;
}

// The i-th of `looks` records that are spread over `size`.
int64_t SpreadIndex(int64_t i, int64_t looks, int64_t size) {
  return i * (size / looks) + i * (size % looks) / looks;
}

template <typename T>
void Widen(const FieldSpec& spec, const FieldView& view, int64_t ignored,
           int64_t record, LabelRange* range) {
  const T* values = reinterpret_cast<const T*>(view.data);
  const size_t count = Count(spec, view);
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<int64_t>(values[i]);
    if (value == ignored) continue;
    if (value > range->largest) {
      range->largest = value;
      range->largest_record = record;
    }
    if (value < range->lowest) {
      range->lowest = value;
      range->lowest_record = record;
    }
  }
}

}  // namespace

absl::StatusOr<FieldScale> MeasureScale(const Dataset& dataset, size_t field,
                                        bool together) {
  const FieldSpec& spec = dataset.fields()[field];
  if (spec.dtype != DType::kFloat64 || (IsDynamic(spec.shape) && !together))
    return InvalidArgument("field '%s' is %s%s, which has no scale", spec.name,
                           Name(spec.dtype), ToString(spec.shape));
  const size_t width =
      together ? 1 : static_cast<size_t>(NumElements(spec.shape));
  FieldScale scale{std::vector<double>(width), std::vector<double>(width)};
  double records = 0;  // values of each place
  Record record;
  // Means first: the sum of squares of large numbers would lose what matters.
  for (const bool deviations : {false, true}) {
    for (int64_t r = 0; r < dataset.size(); ++r) {
      PD_RETURN_IF_ERROR(dataset.Read(r, &record));
      const FieldView& view = record.fields[field];
      const auto* values = reinterpret_cast<const double*>(view.data);
      const size_t count = Count(spec, view);
      for (size_t i = 0; i < count; ++i) {
        const double from_mean = values[i] - scale.mean[i % width];
        if (deviations)
          scale.std[i % width] += from_mean * from_mean;
        else
          scale.mean[i % width] += values[i];
      }
      if (!deviations) records += static_cast<double>(count / width);
    }
    if (records <= 0)
      return InvalidArgument("field '%s' has no values", spec.name);
    if (!deviations)
      for (double& mean : scale.mean) mean /= records;
  }
  for (double& std : scale.std) {
    std = std::sqrt(std / records);
    if (std <= 0) std = 1;
  }
  return scale;
}

absl::StatusOr<int64_t> CountClasses(const Dataset& dataset, size_t field) {
  const FieldSpec& spec = dataset.fields()[field];
  if (dataset.is_stream())
    return InvalidArgument(
        "a stream is not read to count the classes of field '%s'; say "
        "num_classes",
        spec.name);
  absl::StatusOr<int64_t> largest =
      InvalidArgument("field '%s' is %s%s; classes are integers", spec.name,
                      Name(spec.dtype), ToString(spec.shape));
  if (spec.dtype == DType::kInt64) largest = Largest<int64_t>(dataset, field);
  if (spec.dtype == DType::kInt32) largest = Largest<int32_t>(dataset, field);
  if (spec.dtype == DType::kUInt8 && !spec.is_image)
    largest = Largest<uint8_t>(dataset, field);
  PD_RETURN_IF_ERROR(largest.status());
  return *largest + 1;
}

std::optional<LabelRange> LookAtLabels(const Dataset& dataset, size_t field,
                                       int64_t ignored) {
  constexpr int64_t kMostNumbers = int64_t{1} << 26;
  constexpr int64_t kMostPixels = int64_t{1} << 24;
  constexpr int64_t kMostRecords = 200000;
  const FieldSpec& spec = dataset.fields()[field];
  if (spec.is_image ||
      !(spec.dtype == DType::kInt64 || spec.dtype == DType::kInt32 ||
        spec.dtype == DType::kUInt8))
    return std::nullopt;
  LabelRange range;
  Record record;
  if (dataset.size() == 0 || dataset.is_stream()) return range;
  // The first record says how large they are.
  int64_t most = kMostRecords;
  if (dataset.Read(0, &record).ok()) {
    const auto count = std::max<int64_t>(
        1, static_cast<int64_t>(Count(spec, record.fields[field])));
    most = std::min(most, std::max<int64_t>(1, kMostNumbers / count));
    for (size_t i = 0; i < dataset.fields().size(); ++i) {
      const FieldView& view = record.fields[i];
      if (!dataset.fields()[i].is_image ||
          !IsDynamic(dataset.fields()[i].shape))
        continue;
      const int64_t pixels = std::max<int64_t>(1, view.height * view.width);
      most = std::min(most, std::max<int64_t>(1, kMostPixels / pixels));
    }
  }
  const int64_t looks = std::min(dataset.size(), most);
  range.complete = looks == dataset.size();
  for (int64_t i = 0; i < looks; ++i) {
    const int64_t at = SpreadIndex(i, looks, dataset.size());
    if (!dataset.Read(at, &record).ok()) {
      range.complete = false;
      continue;
    }
    const FieldView& view = record.fields[field];
    if (spec.dtype == DType::kInt64)
      Widen<int64_t>(spec, view, ignored, at, &range);
    else if (spec.dtype == DType::kInt32)
      Widen<int32_t>(spec, view, ignored, at, &range);
    else
      Widen<uint8_t>(spec, view, ignored, at, &range);
  }
  return range;
}

}  // namespace pd
