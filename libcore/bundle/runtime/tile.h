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
    friend Vector operator*(const Vector& a, const Vector& b) {
      Vector product;
      for (int i = 0; i < kLanes; ++i) product.lane[i] = a.lane[i] * b.lane[i];
      return product;
    }
    Vector& operator+=(const Vector& b) {
      for (int i = 0; i < kLanes; ++i) lane[i] += b.lane[i];
      return *this;
    }
  };
#endif

  static PD_RUN_INLINE void Fill(float x, Vector* v) {
    float all[kLanes];
    for (float& lane : all) lane = x;
    std::memcpy(v, all, sizeof(all));
  }
  /// A NaN stays one.
  static PD_RUN_INLINE void Bound(float low, float high, Vector* v) {
#if defined(__GNUC__)
    Vector lows, highs;
    Fill(low, &lows);
    Fill(high, &highs);
    *v = *v < lows ? lows : *v;
    *v = *v > highs ? highs : *v;
#else
    for (float& lane : v->lane)
      lane = lane < low ? low : (lane > high ? high : lane);
#endif
  }
};

/// `kRows` rows times kVectors * kLanes columns, from column `at` of the
/// panel on.
template <int kLanes, int kVectors, int kRows>
PD_RUN_INLINE void MultiplyRows(const Tile& t, int64_t at) {
  using Vector = typename Lanes<kLanes>::Vector;
  constexpr size_t kBytes = sizeof(Vector);
  Vector sum[kRows][kVectors];
  PD_RUN_UNROLL
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kVectors; ++j)
      Lanes<kLanes>::Fill(t.row_bias != nullptr ? t.row_bias[r] : 0.0f,
                          &sum[r][j]);
  if (t.add) {
    PD_RUN_UNROLL
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < kVectors; ++j)
        std::memcpy(&sum[r][j], t.c + r * t.c_stride + at + j * kLanes, kBytes);
  }
  const float* a = t.a;
  const float* b = t.b + at;
  for (int64_t k = 0; k < t.depth; ++k) {
    Vector right[kVectors];
    for (int j = 0; j < kVectors; ++j)
      std::memcpy(&right[j], b + j * kLanes, kBytes);
    PD_RUN_UNROLL
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < kVectors; ++j) sum[r][j] += a[r] * right[j];
    a += kPanelRows;
    b += t.b_stride;
  }
  if (t.clamp.any()) {
    PD_RUN_UNROLL
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < kVectors; ++j)
        Lanes<kLanes>::Bound(t.clamp.low, t.clamp.high, &sum[r][j]);
  }
  PD_RUN_UNROLL
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kVectors; ++j)
      std::memcpy(t.c + r * t.c_stride + at + j * kLanes, &sum[r][j], kBytes);
}

template <int kLanes, int kVectors>
PD_RUN_INLINE void MultiplyColumns(const Tile& t, int64_t at) {
  switch (t.rows) {
    case 1:
      return MultiplyRows<kLanes, kVectors, 1>(t, at);
    case 2:
      return MultiplyRows<kLanes, kVectors, 2>(t, at);
    case 3:
      return MultiplyRows<kLanes, kVectors, 3>(t, at);
    case 4:
      return MultiplyRows<kLanes, kVectors, 4>(t, at);
    case 5:
      return MultiplyRows<kLanes, kVectors, 5>(t, at);
    default:
      return MultiplyRows<kLanes, kVectors, 6>(t, at);
  }
}

/// The whole tile; C has room for all columns that are computed.
template <int kLanes>
PD_RUN_INLINE void MultiplyTile(const Tile& t) {
  int64_t at = 0;
  for (; at + kLanes < t.columns; at += 2 * kLanes)
    MultiplyColumns<kLanes, 2>(t, at);
  if (at < t.columns) MultiplyColumns<kLanes, 1>(t, at);
}

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_TILE_H_
