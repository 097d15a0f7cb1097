// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/layer_norm_rows.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/layer_norm_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<decltype(kTag)>;

HWY_INLINE V LoadUpTo(const float* from, int64_t left) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  if (left >= lanes) return hn::LoadU(kTag, from);
  return hn::MaskedLoad(hn::FirstN(kTag, static_cast<size_t>(left)), kTag,
                        from);
}

HWY_INLINE void StoreUpTo(V v, float* to, int64_t left) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  if (left >= lanes)
    hn::StoreU(v, kTag, to);
  else
    hn::BlendedStore(v, hn::FirstN(kTag, static_cast<size_t>(left)), kTag, to);
}

// `value`, 0 behind the row's end.
HWY_INLINE V ZeroBehind(V value, int64_t left) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  if (left >= lanes) return value;
  return hn::IfThenElseZero(hn::FirstN(kTag, static_cast<size_t>(left)), value);
}

HWY_INLINE V LoadOr(const float* from, int64_t i, int64_t left, float other) {
  return from != nullptr ? LoadUpTo(from + i, left) : hn::Set(kTag, other);
}

void NormSomeRows(const NormRows& n, const NormValues& v, int64_t begin,
                  int64_t end) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const float columns = static_cast<float>(n.columns);
  for (int64_t r = begin; r < end; ++r) {
    const float* in = v.x + r * n.columns;
    float* out = v.y + r * n.columns;
    V sum = hn::Zero(kTag);
    for (int64_t i = 0; i < n.columns; i += lanes)
      sum = hn::Add(sum, LoadUpTo(in + i, n.columns - i));
    const float m = hn::GetLane(hn::SumOfLanes(kTag, sum)) / columns;
    const V vm = hn::Set(kTag, m);
    V squares = hn::Zero(kTag);
    for (int64_t i = 0; i < n.columns; i += lanes) {
      const V d = ZeroBehind(hn::Sub(LoadUpTo(in + i, n.columns - i), vm),
                             n.columns - i);
      squares = hn::MulAdd(d, d, squares);
    }
    const float spread = hn::GetLane(hn::SumOfLanes(kTag, squares)) / columns;
    const V inverse = hn::Set(kTag, 1.0f / std::sqrt(spread + n.epsilon));
    for (int64_t i = 0; i < n.columns; i += lanes) {
      const int64_t left = n.columns - i;
      const V h = hn::Mul(hn::Sub(LoadUpTo(in + i, left), vm), inverse);
      StoreUpTo(hn::MulAdd(h, LoadOr(v.scale, i, left, 1.0f),
                           LoadOr(v.bias, i, left, 0.0f)),
                out + i, left);
    }
    if (v.mean != nullptr) v.mean[r] = m;
    if (v.variance != nullptr) v.variance[r] = spread;
  }
}

// dx of rows [begin, end), and their share of dscale and dbias in `sums`, which
// is [2, columns].
void NormGradSomeRows(const NormRows& n, const NormGrad& g, int64_t begin,
                      int64_t end, float* sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const float columns = static_cast<float>(n.columns);
  float* scales = sums;
  float* biases = sums + n.columns;
  std::fill(sums, sums + 2 * n.columns, 0.0f);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = g.x + r * n.columns;
    const float* dy = g.dy + r * n.columns;
    const V mean = hn::Set(kTag, g.mean[r]);
    const V inverse =
        hn::Set(kTag, 1.0f / std::sqrt(g.variance[r] + n.epsilon));
    V sum = hn::Zero(kTag), dot = hn::Zero(kTag);
    for (int64_t i = 0; i < n.columns; i += lanes) {
      const int64_t left = n.columns - i;
      const V d = LoadUpTo(dy + i, left);
      const V h = hn::Mul(hn::Sub(LoadUpTo(x + i, left), mean), inverse);
      const V dh = hn::Mul(d, LoadOr(g.scale, i, left, 1.0f));
      // Elements behind the row are 0 in d, so they add nothing.
      sum = hn::Add(sum, dh);
      dot = hn::MulAdd(dh, h, dot);
      StoreUpTo(hn::MulAdd(d, h, LoadUpTo(scales + i, left)), scales + i, left);
      StoreUpTo(hn::Add(d, LoadUpTo(biases + i, left)), biases + i, left);
    }
    if (g.dx == nullptr) continue;
    float* dx = g.dx + r * n.columns;
    const V by_sum =
        hn::Mul(hn::SumOfLanes(kTag, sum), hn::Set(kTag, 1.0f / columns));
    const V by_dot =
        hn::Mul(hn::SumOfLanes(kTag, dot), hn::Set(kTag, 1.0f / columns));
    for (int64_t i = 0; i < n.columns; i += lanes) {
      const int64_t left = n.columns - i;
      const V dh =
          hn::Mul(LoadUpTo(dy + i, left), LoadOr(g.scale, i, left, 1.0f));
      const V h = hn::Mul(hn::Sub(LoadUpTo(x + i, left), mean), inverse);
      StoreUpTo(hn::Mul(hn::NegMulAdd(h, by_dot, hn::Sub(dh, by_sum)), inverse),
                dx + i, left);
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

HWY_EXPORT(NormSomeRows);
HWY_EXPORT(NormGradSomeRows);

void LayerNormRows(const NormRows& n, const NormValues& v) {
  const auto run = HWY_DYNAMIC_DISPATCH(NormSomeRows);
  ParallelFor(n.rows, 1 + 8192 / n.columns,
              [&](int64_t begin, int64_t end) { run(n, v, begin, end); });
}

size_t NormGradScratch(const NormRows& n) {
  return static_cast<size_t>(Threads()) * 2 * static_cast<size_t>(n.columns) *
         sizeof(float);
}

void LayerNormGradRows(const NormRows& n, const NormGrad& g, float* sums) {
  const auto run = HWY_DYNAMIC_DISPATCH(NormGradSomeRows);
  int used = 1;
  ParallelParts([&](int part, int parts) {
    if (part == 0) used = parts;
    run(n, g, n.rows * part / parts, n.rows * (part + 1) / parts,
        sums + part * 2 * n.columns);
  });
  for (int half = 0; half < 2; ++half) {
    float* to = half == 0 ? g.dscale : g.dbias;
    if (to == nullptr) continue;
    for (int64_t i = 0; i < n.columns; ++i) {
      float sum = 0;
      for (int part = 0; part < used; ++part)
        sum += sums[(2 * part + half) * n.columns + i];
      to[i] = sum;
    }
  }
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
