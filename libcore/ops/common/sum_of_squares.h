// SPDX-License-Identifier: Apache-2.0
// Sums of squares for norms: in double, in parts of one size, so the bits do
// not depend on the number of threads.
#ifndef PD_LIBCORE_OPS_COMMON_SUM_OF_SQUARES_H_
#define PD_LIBCORE_OPS_COMMON_SUM_OF_SQUARES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "libcore/base/parallel.h"

namespace pd {

inline constexpr int64_t kSquaresPart = 16384;  // elements
inline constexpr int64_t kSquaresLanes = 16;

/// Numbers of scratch space that the sum over n elements wants.
inline size_t SquaresParts(int64_t n) {
  return static_cast<size_t>((n + kSquaresPart - 1) / kSquaresPart) + 1;
}

/// `sums` has room for SquaresParts(n) numbers.
template <typename T>
double SumOfSquares(const T* x, int64_t n, double* sums) {
  const auto parts = static_cast<int64_t>(SquaresParts(n)) - 1;
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t last = std::min((part + 1) * kSquaresPart, n);
      // Lanes that do not wait for each other.
      double lanes[kSquaresLanes] = {};
      int64_t i = part * kSquaresPart;
      for (; i + kSquaresLanes <= last; i += kSquaresLanes) {
#pragma omp simd
        for (int64_t lane = 0; lane < kSquaresLanes; ++lane) {
          const double v = static_cast<double>(x[i + lane]);
          lanes[lane] += v * v;
        }
      }
      double sum = 0;
      for (const double lane : lanes) sum += lane;
      for (; i < last; ++i)
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      sums[part] = sum;
    }
  });
  double total = 0;
  for (int64_t part = 0; part < parts; ++part) total += sums[part];
  return total;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_SUM_OF_SQUARES_H_
