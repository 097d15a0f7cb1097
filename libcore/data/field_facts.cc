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

}  // namespace pd
