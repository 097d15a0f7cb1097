// SPDX-License-Identifier: Apache-2.0
// Complex numbers with public members `real` and `imag`.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_COMPLEX_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_COMPLEX_H_

#include <cmath>
#include <complex>
#include <ostream>
#include <type_traits>

namespace phi {
namespace dtype {

template <typename T>
struct alignas(2 * sizeof(T)) complex {
  T real = 0, imag = 0;

  complex() = default;
  complex(T re, T im) : real(re), imag(im) {}
  complex(const std::complex<T>& z) : real(z.real()), imag(z.imag()) {}
  /// A real number.
  template <typename U, typename = typename std::enable_if<
                            std::is_arithmetic<U>::value>::type>
  complex(const U& re) : real(static_cast<T>(re)) {}  // NOLINT
  template <typename U>
  explicit complex(const complex<U>& z)
      : real(static_cast<T>(z.real)), imag(static_cast<T>(z.imag)) {}

  operator std::complex<T>() const { return std::complex<T>(real, imag); }
  /// The real part.
  explicit operator bool() const { return real != T(0) || imag != T(0); }
  template <typename U, typename = typename std::enable_if<
                            std::is_arithmetic<U>::value>::type>
  explicit operator U() const {
    return static_cast<U>(real);
  }

  complex& operator+=(const complex& z) { return *this = *this + z; }
  complex& operator-=(const complex& z) { return *this = *this - z; }
  complex& operator*=(const complex& z) { return *this = *this * z; }
  complex& operator/=(const complex& z) { return *this = *this / z; }

  friend complex operator+(const complex& a, const complex& b) {
    return complex(a.real + b.real, a.imag + b.imag);
  }
  friend complex operator-(const complex& a, const complex& b) {
    return complex(a.real - b.real, a.imag - b.imag);
  }
  friend complex operator*(const complex& a, const complex& b) {
    return complex(a.real * b.real - a.imag * b.imag,
                   a.real * b.imag + a.imag * b.real);
  }
  friend complex operator/(const complex& a, const complex& b) {
    return complex(std::complex<T>(a) / std::complex<T>(b));
  }
  friend complex operator-(const complex& a) {
    return complex(-a.real, -a.imag);
  }
  friend bool operator==(const complex& a, const complex& b) {
    return a.real == b.real && a.imag == b.imag;
  }
  friend bool operator!=(const complex& a, const complex& b) {
    return !(a == b);
  }
  friend std::ostream& operator<<(std::ostream& out, const complex& z) {
    return out << "real:" << z.real << " imag:" << z.imag;
  }
};

template <typename T>
T abs(const complex<T>& z) {
  return std::abs(std::complex<T>(z));
}
template <typename T>
complex<T> conj(const complex<T>& z) {
  return complex<T>(z.real, -z.imag);
}

}  // namespace dtype
}  // namespace phi

namespace paddle {
using complex64 = phi::dtype::complex<float>;
using complex128 = phi::dtype::complex<double>;
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_COMPLEX_H_
