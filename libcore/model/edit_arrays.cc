// SPDX-License-Identifier: Apache-2.0
// Arrays may be views of a file at any address, so elements are read with
// memcpy.
#include "libcore/model/edit_arrays.h"

#include <cstring>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

template <typename T>
T ElementAt(const Array& array, int64_t index) {
  T value;
  std::memcpy(&value,
              array.bytes.get() + static_cast<size_t>(index) * sizeof(T),
              sizeof(T));
  return value;
}

template <typename Body>
absl::Status DispatchFloating(DType dtype, const Body& body) {
  return DispatchTypes<float, double, Float16, BFloat16>(dtype, body);
}

}  // namespace

absl::StatusOr<Array> Transposed(const Array& matrix) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  const size_t size = SizeOf(matrix.dtype);
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array result,
                      NewArray(matrix.dtype, {columns, rows}, &to));
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row, to += size)
      std::memcpy(to,
                  matrix.bytes.get() +
                      static_cast<size_t>(row * columns + column) * size,
                  size);
  return result;
}

absl::StatusOr<Array> InFloatingType(const Array& array, DType to) {
  if (array.dtype == to) return array;
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array result, NewArray(to, array.shape, &bytes));
  result.lod = array.lod;
  PD_RETURN_IF_ERROR(DispatchFloating(array.dtype, [&](auto from) {
    using From = typename decltype(from)::type;
    return DispatchFloating(to, [&](auto tag) {
      using To = typename decltype(tag)::type;
      auto* out = reinterpret_cast<To*>(bytes);
      for (int64_t i = 0; i < array.size(); ++i)
        out[i] = static_cast<To>(ElementAt<From>(array, i));
      return absl::OkStatus();
    });
  }));
  return result;
}

absl::StatusOr<Array> MeanOf(const std::vector<const Array*>& arrays) {
  const Array& first = *arrays.front();
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array result, NewArray(first.dtype, first.shape, &bytes));
  result.lod = first.lod;
  const auto count = static_cast<double>(arrays.size());
  PD_RETURN_IF_ERROR(DispatchFloating(first.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* out = reinterpret_cast<T*>(bytes);
    for (int64_t i = 0; i < first.size(); ++i) {
      double sum = 0;
      for (const Array* array : arrays)
        sum += static_cast<double>(ElementAt<T>(*array, i));
      out[i] = static_cast<T>(static_cast<float>(sum / count));
      if constexpr (std::is_same_v<T, double>) out[i] = sum / count;
    }
    return absl::OkStatus();
  }));
  return result;
}

}  // namespace pd
