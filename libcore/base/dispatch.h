// SPDX-License-Identifier: Apache-2.0
// From a DType that is known when a program is compiled to a C++ type.
#ifndef PD_LIBCORE_BASE_DISPATCH_H_
#define PD_LIBCORE_BASE_DISPATCH_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/error.h"

namespace pd {

/// Carries a type to a generic lambda: `using T = typename
/// decltype(tag)::type`.
template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls `body(TypeTag<T>{})` for the T among Types whose DType is `dtype`;
/// the result of `body` is a Status or StatusOr. Unimplemented otherwise.
template <typename... Types, typename Body>
auto DispatchTypes(DType dtype, const Body& body) {
  using First = std::tuple_element_t<0, std::tuple<Types...>>;
  using Result = std::invoke_result_t<const Body&, TypeTag<First>>;
  Result result = Unimplemented("no kernel for dtype %s", Name(dtype));
  (void)((DTypeOf<Types>() == dtype ? (result = body(TypeTag<Types>{}), true)
                                    : false) ||
         ...);
  return result;
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

}  // namespace pd

#endif  // PD_LIBCORE_BASE_DISPATCH_H_
