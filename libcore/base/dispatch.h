// SPDX-License-Identifier: Apache-2.0
// From a DType that is known when a program is compiled to a C++ type.
#ifndef PD_LIBCORE_BASE_DISPATCH_H_
#define PD_LIBCORE_BASE_DISPATCH_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"

namespace pd {

/// Carries a type to a generic lambda: `using T = typename
/// decltype(tag)::type`.
template <typename T>
struct TypeTag {
  using type = T;
};

/// Unimplemented: no kernel takes `dtype`.
absl::Status NoKernelFor(DType dtype);

/// Calls `body(TypeTag<T>{})` for the T among First and Rest whose DType is
/// `dtype`; the result of `body` is a Status or StatusOr. NoKernelFor(dtype)
/// where none is.
template <typename First, typename... Rest, typename Body>
auto DispatchTypes(DType dtype, const Body& body)
    -> std::invoke_result_t<const Body&, TypeTag<First>> {
  if (DTypeOf<First>() == dtype) return body(TypeTag<First>{});
  if constexpr (sizeof...(Rest) > 0)
    return DispatchTypes<Rest...>(dtype, body);
  else
    return NoKernelFor(dtype);
}

/// float32 and float64.
template <typename Body>
auto DispatchFloat(DType dtype, const Body& body) {
  return DispatchTypes<float, double>(dtype, body);
}

/// float32, float64, and the integers.
template <typename Body>
auto DispatchNumeric(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                       uint8_t>(dtype, body);
}

/// float32, float64, int32, int64 and the complex dtypes: the dtypes that
/// PaddlePaddle adds and multiplies.
template <typename Body>
auto DispatchArithmetic(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, std::complex<float>,
                       std::complex<double>>(dtype, body);
}

/// Every dtype.
template <typename Body>
auto DispatchAll(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, bool, int16_t, int8_t,
                       uint8_t, Float16, BFloat16, std::complex<float>,
                       std::complex<double>>(dtype, body);
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_DISPATCH_H_
