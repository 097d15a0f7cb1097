// SPDX-License-Identifier: Apache-2.0
#include "formats/raw_array.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

struct NumpyName {
  absl::string_view code;
  DType dtype;
};

// The first entry of a DType is how it is written.
constexpr NumpyName kNumpyNames[] = {
    {"b1", DType::kBool},      {"?", DType::kBool},
    {"i1", DType::kInt8},      {"u1", DType::kUInt8},
    {"i2", DType::kInt16},     {"i4", DType::kInt32},
    {"i8", DType::kInt64},     {"f2", DType::kFloat16},
    {"f4", DType::kFloat32},   {"f8", DType::kFloat64},
    {"u2", DType::kBFloat16},  {"V2", DType::kBFloat16},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128},
};

// Bytes that are swapped together: a complex number is two of them.
size_t WordSize(DType dtype) {
  return IsComplex(dtype) ? SizeOf(dtype) / 2 : SizeOf(dtype);
}

void SwapWords(std::byte* bytes, size_t size, size_t word) {
  for (size_t i = 0; i + word <= size; i += word)
    std::reverse(bytes + i, bytes + i + word);
}

// Fortran to C order: walks the target and keeps the source offset.
void Transpose(const std::byte* from, const Shape& shape, size_t element,
               std::byte* to) {
  const size_t rank = shape.size();
  std::vector<size_t> strides(rank, element);
  for (size_t d = 1; d < rank; ++d)
    strides[d] = strides[d - 1] * static_cast<size_t>(shape[d - 1]);
  std::vector<int64_t> index(rank, 0);
  size_t offset = 0;
  for (int64_t n = NumElements(shape); n > 0; --n) {
    std::memcpy(to, from + offset, element);
    to += element;
    for (size_t d = rank; d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * static_cast<size_t>(shape[d]);
      index[d] = 0;
    }
  }
}

bool IsAligned(const std::byte* bytes, size_t alignment) {
  return reinterpret_cast<uintptr_t>(bytes) % alignment == 0;
}

bool AreBools(const std::byte* bytes, size_t size) {
  return std::all_of(bytes, bytes + size,
                     [](std::byte b) { return b <= std::byte{1}; });
}

// Fortran order differs from C order when two extents are above 1.
bool OrderMatters(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(),
                       [](int64_t extent) { return extent != 1; }) > 1;
}

}  // namespace

absl::StatusOr<RawLayout> ParseNumpyDtype(absl::string_view descr) {
  RawLayout layout;
  absl::string_view code = descr;
  if (!code.empty() &&
      absl::string_view("<>=|").find(code[0]) != absl::string_view::npos) {
    layout.big_endian = code[0] == '>';
    code.remove_prefix(1);
  }
  if (code == "O" || code == "O8" || code == "O4")
    return InvalidArgument(
        "element type '%s' is Python objects; expected numbers", descr);
  for (const NumpyName& name : kNumpyNames) {
    if (name.code != code) continue;
    layout.dtype = name.dtype;
    return layout;
  }
  return Unimplemented(
      "element type '%s' is not supported; expected one of b1, i1, i2, i4, "
      "i8, u1, u2 (bfloat16), V2 (bfloat16), f2, f4, f8, c8, c16",
      descr);
}

std::string NumpyDtype(DType dtype) {
  for (const NumpyName& name : kNumpyNames)
    if (name.dtype == dtype)
      return absl::StrCat(SizeOf(dtype) == 1 ? "|" : "<", name.code);
  return "";
}

absl::StatusOr<Array> ArrayFromRaw(std::shared_ptr<const std::byte> bytes,
                                   size_t available, const RawLayout& layout,
                                   Shape shape) {
  const size_t element = SizeOf(layout.dtype);
  PD_ASSIGN_OR_RETURN(const int64_t checked, CheckedBytes(shape, element));
  const size_t size = static_cast<size_t>(checked);
  if (size > available)
    return DataLoss("a %s array of shape %s takes %d bytes; %d are there",
                    Name(layout.dtype), ToString(shape), size, available);
  const size_t word = WordSize(layout.dtype);
  const bool swap = layout.big_endian && word > 1;
  const bool transpose = layout.fortran_order && OrderMatters(shape);
  const bool bools =
      layout.dtype != DType::kBool || AreBools(bytes.get(), size);
  const bool lies_well =
      layout.alignment == Alignment::kAny || IsAligned(bytes.get(), word);
  if (!swap && !transpose && bools && lies_well) {
    Array array;
    array.dtype = layout.dtype;
    array.shape = std::move(shape);
    array.bytes = std::move(bytes);
    return array;
  }
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(Array array,
                      NewArray(layout.dtype, std::move(shape), &out));
  if (size == 0) return array;
  if (transpose)
    Transpose(bytes.get(), array.shape, element, out);
  else
    std::memcpy(out, bytes.get(), size);
  if (swap) SwapWords(out, size, word);
  if (!bools)
    std::transform(out, out + size, out, [](std::byte b) {
      return b == std::byte{0} ? b : std::byte{1};
    });
  return array;
}

}  // namespace pd
