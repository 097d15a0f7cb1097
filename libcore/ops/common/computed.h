// SPDX-License-Identifier: Apache-2.0
// Halves are types to store: elements are computed as float, and stored as
// PaddlePaddle stores them on CPU (truncate_half.h).
#ifndef PD_LIBCORE_OPS_COMMON_COMPUTED_H_
#define PD_LIBCORE_OPS_COMMON_COMPUTED_H_

#include <complex>
#include <type_traits>

#include "libcore/base/half.h"
#include "libcore/base/truncate_half.h"

namespace pd {

template <typename T>
constexpr bool kIsHalf =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> ||
                            std::is_same_v<T, std::complex<double>>;

/// The type that elements of type T are computed in.
template <typename T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

namespace computed_internal {
template <typename T>
struct RealType {
  using type = T;
};
template <typename T>
struct RealType<std::complex<T>> {
  using type = T;
};
}  // namespace computed_internal

/// The type of the parts of a complex T; T itself otherwise.
template <typename T>
using RealOf = typename computed_internal::RealType<T>::type;

/// `value` as an element of type T.
template <typename T, typename V>
T Stored(V value) {
  if constexpr (std::is_same_v<T, V>)
    return value;
  else if constexpr (std::is_same_v<T, Float16>)
    return TruncatedFloat16(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return TruncatedBFloat16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// Whether `value`, or a part of it, is NaN.
template <typename T>
bool IsNotANumber(T value) {
  return value != value;
}

/// The complex conjugate; a real number is its own.
template <typename T>
T Conj(T value) {
  if constexpr (kIsComplex<T>)
    return std::conj(value);
  else
    return value;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_COMPUTED_H_
