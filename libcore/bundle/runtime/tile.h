// SPDX-License-Identifier: Apache-2.0
// The innermost loop of products: up to 6 rows times two vectors of columns,
// kept in registers over the whole depth. It is written once with the
// compiler's vectors and compiled for each instruction set.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_TILE_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_TILE_H_

#include <cstdint>
#include <cstring>

#include "libcore/bundle/runtime/gemm.h"
#include "libcore/bundle/runtime/processor.h"

namespace pd_run {

/// kLanes numbers that are computed with together.
template <int kLanes>
struct Lanes {
#if defined(__GNUC__)
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
#else
  struct Vector {
    float lane[kLanes];
    friend Vector operator*(float a, const Vector& b) {
      Vector product;
      for (int i = 0; i < kLanes; ++i) product.lane[i] = a * b.lane[i];
      return product;
    }
    Vector& operator+=(const Vector& b) {
      for (int i = 0; i < kLanes; ++i) lane[i] += b.lane[i];
      return *this;
    }
  };
#endif
};

/// `kRows` rows times 2 * kLanes columns, from column `at` of the panel on.
template <int kLanes, int kRows>
PD_RUN_INLINE void MultiplyRows(const Tile& t, int64_t at) {
  using Vector = typename Lanes<kLanes>::Vector;
  constexpr size_t kBytes = sizeof(Vector);
  Vector sum[kRows][2];
  std::memset(sum, 0, sizeof(sum));
  if (t.add)
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < 2; ++j)
        std::memcpy(&sum[r][j], t.c + r * t.c_stride + at + j * kLanes, kBytes);
  const float* a = t.a;
  const float* b = t.b + at;
  for (int64_t k = 0; k < t.depth; ++k) {
    Vector right[2];
    std::memcpy(&right[0], b, kBytes);
    std::memcpy(&right[1], b + kLanes, kBytes);
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] += a[r] * right[0];
      sum[r][1] += a[r] * right[1];
    }
    a += kPanelRows;
    b += kPanelColumns;
  }
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < 2; ++j)
      std::memcpy(t.c + r * t.c_stride + at + j * kLanes, &sum[r][j], kBytes);
}

/// The whole tile; C has room for all columns that are computed.
template <int kLanes>
PD_RUN_INLINE void MultiplyTile(const Tile& t) {
  for (int64_t at = 0; at < t.columns; at += 2 * kLanes) {
    switch (t.rows) {
      case 1:
        MultiplyRows<kLanes, 1>(t, at);
        break;
      case 2:
        MultiplyRows<kLanes, 2>(t, at);
        break;
      case 3:
        MultiplyRows<kLanes, 3>(t, at);
        break;
      case 4:
        MultiplyRows<kLanes, 4>(t, at);
        break;
      case 5:
        MultiplyRows<kLanes, 5>(t, at);
        break;
      default:
        MultiplyRows<kLanes, 6>(t, at);
    }
  }
}

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_TILE_H_
