// SPDX-License-Identifier: Apache-2.0
// Sums of probabilities that are stored as logarithms.
#ifndef PD_LIBCORE_OPS_LOSS_LOG_ADD_H_
#define PD_LIBCORE_OPS_LOSS_LOG_ADD_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace pd {

/// The logarithm of probability 0.
constexpr double kLogZero = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b)), without overflow.
inline double LogAdd(double a, double b) {
  if (a == kLogZero) return b;
  if (b == kLogZero) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_LOG_ADD_H_
