// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/labels.h"

#include "libcore/base/error.h"

namespace pd {
namespace {

template <typename T>
bool AllWithin(const T* labels, int64_t n, int64_t low, int64_t high) {
  int outside = 0;
#pragma omp simd reduction(| : outside)
  for (int64_t i = 0; i < n; ++i) {
    const int64_t label = labels[i];
    outside |= static_cast<int>(label < low) | static_cast<int>(label >= high);
  }
  return outside == 0;
}

}  // namespace

bool AllLabelsWithin(const Tensor& labels, int64_t low, int64_t high) {
  const int64_t n = labels.size();
  switch (labels.dtype()) {
    case DType::kInt64:
      return AllWithin(labels.data<int64_t>(), n, low, high);
    case DType::kInt32:
      return AllWithin(labels.data<int32_t>(), n, low, high);
    case DType::kInt16:
      return AllWithin(labels.data<int16_t>(), n, low, high);
    case DType::kInt8:
      return AllWithin(labels.data<int8_t>(), n, low, high);
    default:
      return AllWithin(labels.data<uint8_t>(), n, low, high);
  }
}

absl::Status CheckLabelType(absl::string_view slot, DType dtype) {
  if (IsInteger(dtype)) return absl::OkStatus();
  return InvalidArgument("'%s' is %s; expected integers", slot, Name(dtype));
}

absl::Status CheckLabels(absl::string_view slot, const Tensor& labels,
                         int64_t classes, int64_t ignored) {
  const int64_t n = labels.size();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t label = LabelAt(labels, i);
    if ((label < 0 || label >= classes) && label != ignored)
      return InvalidArgument(
          "'%s' holds %d at record %d of %d; expected 0 to %d%s", slot, label,
          i, n, classes - 1,
          ignored < 0 || ignored >= classes
              ? absl::StrFormat(", or %d to ignore it", ignored)
              : std::string());
  }
  return absl::OkStatus();
}

}  // namespace pd
