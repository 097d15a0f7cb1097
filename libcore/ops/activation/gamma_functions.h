// SPDX-License-Identifier: Apache-2.0
// The logarithmic derivatives of the gamma function, in double precision.
#ifndef PD_LIBCORE_OPS_ACTIVATION_GAMMA_FUNCTIONS_H_
#define PD_LIBCORE_OPS_ACTIVATION_GAMMA_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <limits>

namespace pd {

/// psi(x), raised by the recurrence to where the asymptotic series holds; NaN
/// at its poles 0, -1, -2 ...
inline double DigammaOf(double x) {
  if (x <= 0.0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    return DigammaOf(1.0 - x) - M_PI / std::tan(M_PI * x);
  }
  double shift = 0.0;
  for (; x < 10.0; x += 1.0) shift -= 1.0 / x;
  const double z = 1.0 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * 691.0 / 32760)))));
  return shift + std::log(x) - 0.5 / x - series;
}

/// psi'(x).
inline double TrigammaOf(double x) {
  if (x <= 0.0) {
    const double s = M_PI / std::sin(M_PI * x);
    return s * s - TrigammaOf(1.0 - x);
  }
  double shift = 0.0;
  for (; x < 10.0; x += 1.0) shift += 1.0 / (x * x);
  const double z = 1.0 / (x * x);
  const double series =
      z * (1.0 / 6 -
           z * (1.0 / 30 -
                z * (1.0 / 42 -
                     z * (1.0 / 30 - z * (5.0 / 66 - z * 691.0 / 2730)))));
  return shift + (1.0 + series) / x + 0.5 * z;
}

/// Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, ... for an
/// integer s > 1: a few terms, then the Euler-Maclaurin formula. Infinite where
/// a term is.
inline double HurwitzZeta(double s, double q) {
  if (q <= 0.0 && q == std::floor(q))
    return std::numeric_limits<double>::infinity();
  // Terms far below the largest one do not count, however many there are.
  constexpr double kFar = 1e7;
  if (q < -kFar || q != q) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0, a = q;
  for (int i = 0; i < 12 || a < 12.0; ++i, a += 1.0) sum += std::pow(a, -s);
  const double power = std::pow(a, -s);
  sum += a * power / (s - 1) + 0.5 * power;
  // B(2k) / (2k)!
  constexpr double kCoefficients[] = {
      1.0 / 12,           -1.0 / 720,     1.0 / 30240,
      -1.0 / 1209600,     1.0 / 47900160, -691.0 / 1307674368000.0,
      1.0 / 74724249600.0};
  double rising = s, falling = power / a;
  for (int k = 0; k < 7; ++k) {
    sum += kCoefficients[k] * rising * falling;
    rising *= (s + 2.0 * k + 1.0) * (s + 2.0 * k + 2.0);
    falling /= a * a;
  }
  return sum;
}

/// The n-th derivative of psi.
inline double PolygammaOf(int64_t n, double x) {
  if (n == 0) return DigammaOf(x);
  const double factorial = std::exp(std::lgamma(static_cast<double>(n) + 1.0));
  const double value = factorial * HurwitzZeta(static_cast<double>(n) + 1.0, x);
  return n % 2 == 0 ? -value : value;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_GAMMA_FUNCTIONS_H_
