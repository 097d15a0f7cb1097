// SPDX-License-Identifier: Apache-2.0
// Tiles of kRows rows and two vectors of columns, whose sums stay in registers.
// A transposed second factor is copied first: into panels of two vectors of
// columns, zeros behind the last one.
#include "libcore/kernels/cpu/cache_product.h"

#include <algorithm>

#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/cache_product.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;
constexpr int64_t kRows = kLanes == 16 ? 14 : 6;
const hn::CappedTag<float, kLanes> kTag;
using V = hn::Vec<decltype(kTag)>;

struct Tile {
  int64_t k;
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row, columns;  // kPanel of them at most
  float alpha;
  bool add;
};

template <int kCount>
void MultiplyTile(const Tile& t) {
  const auto first = hn::FirstN(kTag, static_cast<size_t>(t.columns));
  const auto second = hn::FirstN(
      kTag, static_cast<size_t>(std::max<int64_t>(t.columns - kLanes, 0)));
  V sums[kCount][2];
  for (int i = 0; i < kCount; ++i) sums[i][0] = sums[i][1] = hn::Zero(kTag);
  const float *a = t.a, *b = t.b;
  for (int64_t k = 0; k < t.k; ++k, a += t.a_column, b += t.b_row) {
    const V b0 = hn::MaskedLoad(first, kTag, b);
    const V b1 = hn::MaskedLoad(second, kTag, b + kLanes);
    for (int i = 0; i < kCount; ++i) {
      const V x = hn::Set(kTag, a[i * t.a_row]);
      sums[i][0] = hn::MulAdd(x, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(x, b1, sums[i][1]);
    }
  }
  const V alpha = hn::Set(kTag, t.alpha);
// Without it the sums are an array in memory, for the whole function.
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    float* c = t.c + i * t.c_row;
    V c0 = hn::Mul(alpha, sums[i][0]), c1 = hn::Mul(alpha, sums[i][1]);
    if (t.add) {
      c0 = hn::Add(c0, hn::MaskedLoad(first, kTag, c));
      c1 = hn::Add(c1, hn::MaskedLoad(second, kTag, c + kLanes));
    }
    hn::BlendedStore(c0, first, kTag, c);
    hn::BlendedStore(c1, second, kTag, c + kLanes);
  }
}

// Of `rows` rows; returns those it took.
int64_t MultiplyRows(int64_t rows, const Tile& t) {
  if (rows >= kRows) return MultiplyTile<kRows>(t), kRows;
  if (rows >= 8) return MultiplyTile<8>(t), 8;
  if (rows >= 4) return MultiplyTile<4>(t), 4;
  if (rows >= 2) return MultiplyTile<2>(t), 2;
  return MultiplyTile<1>(t), 1;
}

// to[i * kPanel + r] = from[r, i] of four rows and kLanes columns.
void PackFour(const float* from, int64_t row, float* to) {
  const V a = hn::LoadU(kTag, from), b = hn::LoadU(kTag, from + row);
  const V c = hn::LoadU(kTag, from + 2 * row);
  const V d = hn::LoadU(kTag, from + 3 * row);
  const hn::RepartitionToWide<decltype(kTag)> wide;
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(kTag, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(kTag, a, b));
  const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(kTag, c, d));
  const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(kTag, c, d));
  // Column 4 g + i is block g of vector i.
  HWY_ALIGN float columns[4][kLanes];
  hn::Store(hn::BitCast(kTag, hn::InterleaveLower(wide, ab_low, cd_low)), kTag,
            columns[0]);
  hn::Store(hn::BitCast(kTag, hn::InterleaveUpper(wide, ab_low, cd_low)), kTag,
            columns[1]);
  hn::Store(hn::BitCast(kTag, hn::InterleaveLower(wide, ab_high, cd_high)),
            kTag, columns[2]);
  hn::Store(hn::BitCast(kTag, hn::InterleaveUpper(wide, ab_high, cd_high)),
            kTag, columns[3]);
  const hn::FixedTag<float, 4> four;
  for (int64_t g = 0; g < kLanes / 4; ++g)
    for (int64_t i = 0; i < 4; ++i)
      hn::StoreU(hn::Load(four, columns[i] + 4 * g), four,
                 to + (4 * g + i) * kPanel);
}

// One panel: `rows` rows of b, kPanel at most.
void PackPanel(const float* b, int64_t rows, int64_t columns, float* to) {
  if (rows < kPanel) std::fill_n(to, kPanel * columns, 0.0f);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes)
      PackFour(b + r * columns + i, columns, to + i * kPanel + r);
    for (; i < columns; ++i)
      for (int64_t of = r; of < r + 4; ++of)
        to[i * kPanel + of] = b[of * columns + i];
  }
  for (; r < rows; ++r)
    for (int64_t i = 0; i < columns; ++i)
      to[i * kPanel + r] = b[r * columns + i];
}

int64_t FloatsOf(const GemmShape& s) {
  return s.trans_b ? (s.n + kPanel - 1) / kPanel * kPanel * s.k : 0;
}

void Multiply(const GemmShape& s, float alpha, const float* a, const float* b,
              bool add, float* c, float* scratch) {
  if (s.trans_b)
    for (int64_t j = 0; j < s.n; j += kPanel)
      PackPanel(b + j * s.k, std::min(kPanel, s.n - j), s.k, scratch + j * s.k);
  Tile t;
  t.k = s.k;
  t.a_row = s.trans_a ? 1 : s.k;
  t.a_column = s.trans_a ? s.m : 1;
  t.b_row = s.trans_b ? kPanel : s.n;
  t.c_row = s.n;
  t.alpha = alpha;
  t.add = add;
  for (int64_t j = 0; j < s.n; j += kPanel) {
    t.b = s.trans_b ? scratch + j * s.k : b + j;
    t.columns = std::min(kPanel, s.n - j);
    for (int64_t i = 0; i < s.m;) {
      t.a = a + i * t.a_row;
      t.c = c + i * s.n + j;
      i += MultiplyRows(s.m - i, t);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(FloatsOf);
HWY_EXPORT(Multiply);

int64_t CacheProductFloats(const GemmShape& shape) {
  return HWY_DYNAMIC_DISPATCH(FloatsOf)(shape);
}

void CacheProduct(const GemmShape& shape, float alpha, const float* a,
                  const float* b, bool add, float* c, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Multiply)(shape, alpha, a, b, add, c, scratch);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
