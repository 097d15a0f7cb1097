// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/padding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

template <typename T>
absl::Status SetPattern(double value, const std::string& field,
                        std::array<std::byte, 8>* pattern) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    if (value != std::floor(value) ||
        value < static_cast<double>(std::numeric_limits<T>::min()) ||
        value > static_cast<double>(std::numeric_limits<T>::max()))
      return InvalidArgument("field '%s' is %s; it cannot be padded with %g",
                             field, Name(DTypeOf<T>()), value);
  }
  const T element = static_cast<T>(value);
  std::memcpy(pattern->data(), &element, sizeof(T));
  return absl::OkStatus();
}

absl::Status PatternOf(const FieldSpec& spec, double value,
                       std::array<std::byte, 8>* pattern) {
  switch (spec.dtype) {
    case DType::kFloat32:
      return SetPattern<float>(value, spec.name, pattern);
    case DType::kFloat64:
      return SetPattern<double>(value, spec.name, pattern);
    case DType::kInt64:
      return SetPattern<int64_t>(value, spec.name, pattern);
    case DType::kInt32:
      return SetPattern<int32_t>(value, spec.name, pattern);
    case DType::kInt16:
      return SetPattern<int16_t>(value, spec.name, pattern);
    case DType::kInt8:
      return SetPattern<int8_t>(value, spec.name, pattern);
    case DType::kUInt8:
      return SetPattern<uint8_t>(value, spec.name, pattern);
    default:
      if (value == 0) return absl::OkStatus();
      return InvalidArgument("field '%s' is %s; it is padded with 0 only",
                             spec.name, Name(spec.dtype));
  }
}

void Fill(const std::byte* pattern, size_t bytes, int64_t count,
          std::byte* out) {
  const bool same = std::all_of(pattern, pattern + bytes,
                                [&](std::byte b) { return b == pattern[0]; });
  if (same) {
    std::memset(out, static_cast<int>(pattern[0]),
                static_cast<size_t>(count) * bytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i, out += bytes)
    std::memcpy(out, pattern, bytes);
}

}  // namespace

absl::StatusOr<Padder> Padder::Create(const FieldSpec& spec,
                                      const FieldPadding& padding) {
  if (spec.shape.size() > kMostVaryingAxes)
    return Unimplemented("field '%s' has %d axes; expected at most %d",
                         spec.name, spec.shape.size(), kMostVaryingAxes);
  const bool sized =
      padding.length > 0 || padding.max_length > 0 || padding.multiple_of > 1;
  if (sized && spec.shape[0] >= 0)
    return InvalidArgument(
        "field '%s' has records of shape %s: its first axis does not differ",
        spec.name, ToString(spec.shape));
  if (padding.length < 0 || padding.max_length < 0 || padding.multiple_of < 1)
    return InvalidArgument("field '%s': a length for padding is below 1",
                           spec.name);
  Padder padder;
  padder.padding_ = padding;
  padder.shape_ = spec.shape;
  if (padding.length > 0) padder.shape_[0] = padding.length;
  padder.element_bytes_ = SizeOf(spec.dtype);
  PD_RETURN_IF_ERROR(PatternOf(spec, padding.value.value_or(spec.pad_value),
                               &padder.pattern_));
  return padder;
}

absl::Status Padder::Cut(FieldView* view) const {
  int64_t most = padding_.max_length;
  if (padding_.length > 0 && (most == 0 || padding_.length < most))
    most = padding_.length;
  const int64_t length = view->extents[0];
  if (most == 0 || length <= most) return absl::OkStatus();
  if (padding_.truncate == FieldPadding::Truncate::kNever)
    return OutOfRange("field '%s' has length %d; expected at most %d",
                      padding_.field, length, most);
  if (padding_.truncate == FieldPadding::Truncate::kStart) {
    int64_t row = static_cast<int64_t>(element_bytes_);
    for (size_t axis = 1; axis < shape_.size(); ++axis)
      row *= view->extents[axis];
    view->data += (length - most) * row;
  }
  view->extents[0] = most;
  return absl::OkStatus();
}

Padder::Extents Padder::Smallest() const {
  Extents extents = {};
  for (size_t axis = 0; axis < shape_.size(); ++axis)
    extents[axis] = std::max<int64_t>(0, shape_[axis]);
  return extents;
}

void Padder::Include(const FieldView& view, Extents* extents) const {
  for (size_t axis = 0; axis < shape_.size(); ++axis)
    (*extents)[axis] = std::max((*extents)[axis], view.extents[axis]);
}

// A batch of nothing but empty records still has one place each: arrays without
// elements are no input for a network.
void Padder::Round(Extents* extents) const {
  for (size_t axis = 0; axis < shape_.size(); ++axis)
    if (shape_[axis] < 0 && (*extents)[axis] == 0) (*extents)[axis] = 1;
  if (padding_.length > 0) return;
  const int64_t step = padding_.multiple_of;
  (*extents)[0] = ((*extents)[0] + step - 1) / step * step;
}

absl::StatusOr<int64_t> Padder::Elements(const Extents& extents) const {
  const Shape shape(
      extents.begin(),
      extents.begin() + static_cast<std::ptrdiff_t>(shape_.size()));
  PD_RETURN_IF_ERROR(CheckedBytes(shape, element_bytes_).status());
  return NumElements(shape);
}

void Padder::Write(const FieldView& view, const Extents& extents,
                   std::byte* out) const {
  int64_t whole = 1, own = 1;
  for (size_t axis = 0; axis < shape_.size(); ++axis) {
    whole *= extents[axis];
    own *= view.extents[axis];
  }
  if (own < whole) Fill(pattern_.data(), element_bytes_, whole, out);
  if (own == 0) return;
  if (padding_.left) {
    int64_t row = static_cast<int64_t>(element_bytes_);
    for (size_t axis = 1; axis < shape_.size(); ++axis) row *= extents[axis];
    out += (extents[0] - view.extents[0]) * row;
  }
  Copy(view.data, view.extents, extents, 0, out);
}

void Padder::Copy(const std::byte* in, const Extents& from, const Extents& to,
                  size_t axis, std::byte* out) const {
  int64_t in_row = static_cast<int64_t>(element_bytes_), out_row = in_row;
  for (size_t i = axis + 1; i < shape_.size(); ++i) {
    in_row *= from[i];
    out_row *= to[i];
  }
  if (in_row == out_row) {
    std::memcpy(out, in, static_cast<size_t>(from[axis] * in_row));
    return;
  }
  for (int64_t i = 0; i < from[axis]; ++i)
    Copy(in + i * in_row, from, to, axis + 1, out + i * out_row);
}

}  // namespace pd
