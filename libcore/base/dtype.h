// SPDX-License-Identifier: Apache-2.0
// Element types. The numbers are those of VarType.Type in a ProgramDesc, so a
// file's code and ours are the same thing.
#ifndef PD_LIBCORE_BASE_DTYPE_H_
#define PD_LIBCORE_BASE_DTYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include "absl/strings/string_view.h"

#include "libcore/base/half.h"

namespace pd {

enum class DType : int32_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kUInt8 = 20,
  kInt8 = 21,
  kBFloat16 = 22,
  kComplex64 = 23,
  kComplex128 = 24,
};

/// Bytes of one element.
size_t SizeOf(DType dtype);

/// "float32", "int64", ...: PaddlePaddle's and numpy's spelling.
absl::string_view Name(DType dtype);

/// The type with this VarType.Type code; nothing when the code is not one of
/// a plain element type.
std::optional<DType> DTypeFromCode(int32_t code);

/// The type with this Name(); nothing when there is none.
std::optional<DType> DTypeFromName(absl::string_view name);

bool IsFloating(DType dtype);  ///< float16, bfloat16, float32, float64
bool IsInteger(DType dtype);   ///< signed and unsigned integers, not bool
bool IsComplex(DType dtype);

/// DTypeOf<float>() is DType::kFloat32 and so on.
template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<bool>() {
  return DType::kBool;
}
template <>
constexpr DType DTypeOf<int16_t>() {
  return DType::kInt16;
}
template <>
constexpr DType DTypeOf<int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType DTypeOf<int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType DTypeOf<Float16>() {
  return DType::kFloat16;
}
template <>
constexpr DType DTypeOf<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kFloat64;
}
template <>
constexpr DType DTypeOf<uint8_t>() {
  return DType::kUInt8;
}
template <>
constexpr DType DTypeOf<int8_t>() {
  return DType::kInt8;
}
template <>
constexpr DType DTypeOf<BFloat16>() {
  return DType::kBFloat16;
}
template <>
constexpr DType DTypeOf<std::complex<float>>() {
  return DType::kComplex64;
}
template <>
constexpr DType DTypeOf<std::complex<double>>() {
  return DType::kComplex128;
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_DTYPE_H_
