// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/convert.h"

#include <utility>

#include "absl/strings/strip.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr std::pair<phi::DataType, DType> kTypes[] = {
    {phi::DataType::BOOL, DType::kBool},
    {phi::DataType::UINT8, DType::kUInt8},
    {phi::DataType::INT8, DType::kInt8},
    {phi::DataType::INT16, DType::kInt16},
    {phi::DataType::INT32, DType::kInt32},
    {phi::DataType::INT64, DType::kInt64},
    {phi::DataType::FLOAT16, DType::kFloat16},
    {phi::DataType::BFLOAT16, DType::kBFloat16},
    {phi::DataType::FLOAT32, DType::kFloat32},
    {phi::DataType::FLOAT64, DType::kFloat64},
    {phi::DataType::COMPLEX64, DType::kComplex64},
    {phi::DataType::COMPLEX128, DType::kComplex128},
};

}  // namespace

absl::StatusOr<DType> DTypeOfPhi(phi::DataType type) {
  for (const auto& [phi, dtype] : kTypes)
    if (phi == type) return dtype;
  return InvalidArgument("%s is no type of tensors here",
                         phi::DataTypeToString(type));
}

phi::DataType PhiTypeOf(DType type) {
  for (const auto& [phi, dtype] : kTypes)
    if (dtype == type) return phi;
  return phi::DataType::UNDEFINED;
}

absl::Status StatusOf(const phi::enforce::EnforceNotMet& error) {
  const absl::string_view text = absl::StripPrefix(error.what(), error.kind());
  for (int code = 1;
       code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code)
    if (ErrorKindName(static_cast<absl::StatusCode>(code)) == error.kind())
      return absl::Status(static_cast<absl::StatusCode>(code),
                          absl::StripPrefix(text, ": "));
  return absl::UnknownError(error.what());
}

phi::enforce::EnforceNotMet ErrorOf(const absl::Status& status) {
  const absl::StatusCode code = absl::IsDataLoss(status)
                                    ? absl::StatusCode::kInvalidArgument
                                    : status.code();
  return phi::enforce::EnforceNotMet(std::string(ErrorKindName(code)),
                                     std::string(status.message()));
}

}  // namespace pd
