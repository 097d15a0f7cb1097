// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// a * b, held within kMostBytes.
int64_t BoundedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? kMostBytes : -kMostBytes;
  return std::clamp(product, -kMostBytes, kMostBytes);
}

}  // namespace

std::string ToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t NumElements(const Shape& shape) {
  return NumElements(shape, 0, shape.size());
}

int64_t NumElements(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n = BoundedProduct(n, shape[i]);
  return n;
}

absl::StatusOr<int64_t> BytesOfExtents(const Shape& shape,
                                       size_t element_size) {
  auto bytes = static_cast<int64_t>(element_size);
  for (int64_t extent : shape) {
    if (extent <= 1) continue;
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMostBytes)
      return OutOfRange(
          "shape %s with elements of %d bytes is larger than any memory",
          ToString(shape), element_size);
  }
  return bytes;
}

absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, size_t element_size) {
  for (int64_t extent : shape)
    if (extent < 0)
      return InvalidArgument("shape %s has a negative extent", ToString(shape));
  PD_RETURN_IF_ERROR(BytesOfExtents(shape, element_size).status());
  return NumElements(shape) * static_cast<int64_t>(element_size);
}

bool IsDynamic(const Shape& shape) {
  for (int64_t extent : shape)
    if (extent < 0) return true;
  return false;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = BoundedProduct(strides[i], shape[i]);
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
