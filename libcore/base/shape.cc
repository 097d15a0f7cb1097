// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/shape.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"

namespace pd {

std::string ToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t NumElements(const Shape& shape) {
  return NumElements(shape, 0, shape.size());
}

int64_t NumElements(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= shape[i];
  return n;
}

absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, size_t element_size) {
  int64_t bytes = static_cast<int64_t>(element_size);
  for (int64_t extent : shape) {
    if (extent < 0)
      return InvalidArgument("shape %s has a negative extent", ToString(shape));
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return OutOfRange("shape %s with elements of %d bytes overflows 64 bits",
                        ToString(shape), element_size);
  }
  return bytes;
}

bool IsDynamic(const Shape& shape) {
  for (int64_t extent : shape)
    if (extent < 0) return true;
  return false;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, size_t rank,
                                  const char* attribute) {
  const int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return InvalidArgument(
        "attr '%s' is %d; the tensor has rank %d, so it must be in [%d, %d]",
        attribute, axis, r, -r, r - 1);
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

}  // namespace pd
