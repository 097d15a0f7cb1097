// SPDX-License-Identifier: Apache-2.0
// Sums of squares for norms: in double, in parts of one size, so the bits do
// not depend on the number of threads.
#ifndef PD_LIBCORE_OPS_SUM_OF_SQUARES_H_
#define PD_LIBCORE_OPS_SUM_OF_SQUARES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "libcore/base/parallel.h"

namespace pd {

inline constexpr int64_t kSquaresPart = 16384;  // elements

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
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = part * kSquaresPart; i < last; ++i) {
        const double v = static_cast<double>(x[i]);
        sum += v * v;
      }
      sums[part] = sum;
    }
  });
  double total = 0;
  for (int64_t part = 0; part < parts; ++part) total += sums[part];
  return total;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SUM_OF_SQUARES_H_
