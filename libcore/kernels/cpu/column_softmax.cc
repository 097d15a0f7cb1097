// SPDX-License-Identifier: Apache-2.0
// A vector holds elements of neighbouring lines, so a line is a loop over
// vectors `inner` apart. Two vectors at a time: whole cache lines are read.
#include "libcore/kernels/cpu/column_softmax.h"

#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/column_softmax.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/unary_loops.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
using M = hn::Mask<decltype(kTag)>;

HWY_INLINE V ExpBelow(V x) { return KeepNan(x, hn::Exp(kTag, x)); }
HWY_INLINE V LogOfSum(V sum) { return KeepNan(sum, hn::Log(kTag, sum)); }

// The distance from the largest element; log_softmax has PaddlePaddle's floor.
HWY_INLINE V BelowOf(V x, V largest, bool log) {
  const V floor = hn::Set(kTag, -64.0f);
  const V below = hn::Sub(x, largest);
  if (!log) return below;
  return hn::IfThenElse(hn::Lt(below, floor), floor, below);
}

// Lines of two vectors; the second may have no lanes.
void LinesForward(const float* x, int64_t n, int64_t inner, int64_t lines,
                  bool log, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const M here = hn::FirstN(kTag, static_cast<size_t>(std::min(lines, lanes)));
  const int64_t more = std::max<int64_t>(lines - lanes, 0);
  const M next = hn::FirstN(kTag, static_cast<size_t>(more));
  const int64_t step = more > 0 ? lanes : 0;
  V max0 = hn::MaskedLoad(here, kTag, x);
  V max1 = hn::MaskedLoad(next, kTag, x + step);
  for (int64_t i = 1; i < n; ++i) {
    max0 = hn::Max(max0, hn::MaskedLoad(here, kTag, x + i * inner));
    max1 = hn::Max(max1, hn::MaskedLoad(next, kTag, x + i * inner + step));
  }
  V sum0 = hn::Zero(kTag), sum1 = hn::Zero(kTag);
  for (int64_t i = 0; i < n; ++i) {
    const float* from = x + i * inner;
    float* to = out + i * inner;
    const V a = BelowOf(hn::MaskedLoad(here, kTag, from), max0, log);
    const V b = BelowOf(hn::MaskedLoad(next, kTag, from + step), max1, log);
    const V ea = ExpBelow(a), eb = ExpBelow(b);
    sum0 = hn::Add(sum0, ea);
    sum1 = hn::Add(sum1, eb);
    hn::BlendedStore(log ? a : ea, here, kTag, to);
    hn::BlendedStore(log ? b : eb, next, kTag, to + step);
  }
  const V one = hn::Set(kTag, 1.0f);
  const V by0 = log ? LogOfSum(sum0) : hn::Div(one, sum0);
  const V by1 = log ? LogOfSum(sum1) : hn::Div(one, sum1);
  for (int64_t i = 0; i < n; ++i) {
    float* to = out + i * inner;
    const V a = hn::MaskedLoad(here, kTag, to);
    const V b = hn::MaskedLoad(next, kTag, to + step);
    hn::BlendedStore(log ? hn::Sub(a, by0) : hn::Mul(a, by0), here, kTag, to);
    hn::BlendedStore(log ? hn::Sub(b, by1) : hn::Mul(b, by1), next, kTag,
                     to + step);
  }
}

// Lines of one vector.
void LinesGradient(const float* y, const float* dy, int64_t n, int64_t inner,
                   int64_t lines, bool log, float* dx) {
  const M here = hn::FirstN(kTag, static_cast<size_t>(lines));
  V sum = hn::Zero(kTag);
  for (int64_t i = 0; i < n; ++i) {
    const V g = hn::MaskedLoad(here, kTag, dy + i * inner);
    sum = log ? hn::Add(sum, g)
              : hn::MulAdd(hn::MaskedLoad(here, kTag, y + i * inner), g, sum);
  }
  for (int64_t i = 0; i < n; ++i) {
    const V g = hn::MaskedLoad(here, kTag, dy + i * inner);
    const V v = hn::MaskedLoad(here, kTag, y + i * inner);
    const V result =
        log ? hn::NegMulAdd(ExpBelow(v), sum, g) : hn::Mul(v, hn::Sub(g, sum));
    hn::BlendedStore(result, here, kTag, dx + i * inner);
  }
}

int64_t LanesOfLines() { return static_cast<int64_t>(hn::Lanes(kTag)); }

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(LinesForward);
HWY_EXPORT(LinesGradient);
HWY_EXPORT(LanesOfLines);

namespace {

// Calls body(offset, lines) for groups of at most `width` neighbouring lines.
template <typename Body>
void ForGroups(const ColumnShape& s, int64_t width, const Body& body) {
  const int64_t groups = (s.inner + width - 1) / width;
  const int64_t grain = 1 + 8192 / (s.n * std::min(width, s.inner) + 1);
  ParallelFor(s.outer * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g % groups * width;
      body(g / groups * s.n * s.inner + first,
           std::min(width, s.inner - first));
    }
  });
}

}  // namespace

void ColumnSoftmax(const float* x, const ColumnShape& shape, bool log,
                   float* out) {
  const auto run = HWY_DYNAMIC_DISPATCH(LinesForward);
  ForGroups(shape, 2 * HWY_DYNAMIC_DISPATCH(LanesOfLines)(),
            [&](int64_t at, int64_t lines) {
              run(x + at, shape.n, shape.inner, lines, log, out + at);
            });
}

void ColumnSoftmaxGrad(const float* y, const float* dy,
                       const ColumnShape& shape, bool log, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(LinesGradient);
  ForGroups(shape, HWY_DYNAMIC_DISPATCH(LanesOfLines)(),
            [&](int64_t at, int64_t lines) {
              run(y + at, dy + at, shape.n, shape.inner, lines, log, dx + at);
            });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
