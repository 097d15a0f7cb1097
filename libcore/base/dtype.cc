// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/dtype.h"

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

struct DTypeInfo {
  DType dtype;
  absl::string_view name;
  size_t size;
};

constexpr DTypeInfo kDTypes[] = {
    {DType::kBool, "bool", 1},           {DType::kInt16, "int16", 2},
    {DType::kInt32, "int32", 4},         {DType::kInt64, "int64", 8},
    {DType::kFloat16, "float16", 2},     {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},     {DType::kUInt8, "uint8", 1},
    {DType::kInt8, "int8", 1},           {DType::kBFloat16, "bfloat16", 2},
    {DType::kComplex64, "complex64", 8}, {DType::kComplex128, "complex128", 16},
};

const DTypeInfo& InfoOf(DType dtype) {
  for (const DTypeInfo& info : kDTypes)
    if (info.dtype == dtype) return info;
  PD_INVARIANT(!"a DType outside its enumeration");
  return kDTypes[0];
}

}  // namespace

size_t SizeOf(DType dtype) { return InfoOf(dtype).size; }
absl::string_view Name(DType dtype) { return InfoOf(dtype).name; }

std::optional<DType> DTypeFromCode(int32_t code) {
  for (const DTypeInfo& info : kDTypes)
    if (static_cast<int32_t>(info.dtype) == code) return info.dtype;
  return std::nullopt;
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (const DTypeInfo& info : kDTypes)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool IsInteger(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUInt8 ||
         dtype == DType::kInt16 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

bool IsComplex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

absl::Status NoKernelFor(DType dtype) {
  return Unimplemented("no kernel for dtype %s", Name(dtype));
}

}  // namespace pd
