// SPDX-License-Identifier: Apache-2.0
// The reference matrix product: C = alpha * op(A) op(B), summed over a list of
// pairs of matrices, for many C at once.
#ifndef PD_LIBCORE_OPS_COMMON_GEMM_H_
#define PD_LIBCORE_OPS_COMMON_GEMM_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"

namespace pd {

/// Row-major matrices: A is [m, k], or [k, m] with trans_a; B is [k, n], or
/// [n, k] with trans_b; C is [m, n].
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
};

/// For each C (they lie one after the other) the offsets of the A and B whose
/// products it sums. Empty: zeros.
using GemmBatch = std::vector<std::vector<std::pair<int64_t, int64_t>>>;

// Tiles that stay in the caches: a panel of B of kGemmK x kGemmN elements.
inline constexpr int64_t kGemmK = 64, kGemmN = 128, kGemmM = 4;

// c[0..rows)[n] += packed a[rows][k] * packed b[k][n]
template <typename T>
void GemmTile(const T* a, const T* b, T* c, int64_t ldc, int64_t rows,
              int64_t n, int64_t k) {
  if (rows == kGemmM) {
    T* c0 = c;
    T* c1 = c + ldc;
    T* c2 = c + 2 * ldc;
    T* c3 = c + 3 * ldc;
    for (int64_t p = 0; p < k; ++p) {
      const T* row = b + p * n;
      const T a0 = a[p], a1 = a[k + p], a2 = a[2 * k + p], a3 = a[3 * k + p];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        c0[j] += a0 * row[j];
        c1[j] += a1 * row[j];
        c2[j] += a2 * row[j];
        c3[j] += a3 * row[j];
      }
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    T* to = c + i * ldc;
    for (int64_t p = 0; p < k; ++p) {
      const T* row = b + p * n;
      const T v = a[i * k + p];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) to[j] += v * row[j];
    }
  }
}

// Rows [begin, end) of C += alpha * op(A) op(B).
template <typename T>
void GemmRows(const GemmShape& s, T alpha, const T* a, const T* b, T* c,
              int64_t begin, int64_t end) {
  T packed_a[kGemmM * kGemmK];
  T packed_b[kGemmK * kGemmN];
  for (int64_t j0 = 0; j0 < s.n; j0 += kGemmN) {
    const int64_t n = std::min(kGemmN, s.n - j0);
    for (int64_t p0 = 0; p0 < s.k; p0 += kGemmK) {
      const int64_t k = std::min(kGemmK, s.k - p0);
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          packed_b[p * n + j] = s.trans_b ? b[(j0 + j) * s.k + p0 + p]
                                          : b[(p0 + p) * s.n + j0 + j];
      for (int64_t i0 = begin; i0 < end; i0 += kGemmM) {
        const int64_t rows = std::min(kGemmM, end - i0);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t p = 0; p < k; ++p)
            packed_a[i * k + p] =
                alpha * (s.trans_a ? a[(p0 + p) * s.m + i0 + i]
                                   : a[(i0 + i) * s.k + p0 + p]);
        GemmTile(packed_a, packed_b, c + i0 * s.n + j0, s.n, rows, n, k);
      }
    }
  }
}

/// Every C of the batch. Rows of all of them are shared out among the threads.
template <typename T>
void Gemm(const GemmShape& s, const GemmBatch& batch, T alpha, const T* a,
          const T* b, T* c) {
  const int64_t rows = static_cast<int64_t>(batch.size()) * s.m;
  const int64_t work = std::max<int64_t>(1, s.n * s.k);
  const int64_t grain = std::max<int64_t>(kGemmM, 65536 / work);
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t which = begin / s.m, first = begin % s.m;
      const int64_t last = std::min(s.m, first + end - begin);
      T* to = c + which * s.m * s.n;
      std::fill(to + first * s.n, to + last * s.n, T(0));
      for (const auto& [from_a, from_b] : batch[static_cast<size_t>(which)])
        GemmRows(s, alpha, a + from_a, b + from_b, to, first, last);
      begin += last - first;
    }
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_GEMM_H_
