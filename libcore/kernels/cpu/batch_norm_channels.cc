// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/batch_norm_channels.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/batch_norm_channels.cc"
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
using M = hn::Mask<decltype(kTag)>;

HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(kTag)); }

// Vectors of one lane's elements, or of one group's lanes: how a stretch of
// memory is walked. `coefficient` picks what belongs to a vector.
template <bool kWhole>
HWY_INLINE V Load(const float* from, M mask) {
  return kWhole ? hn::LoadU(kTag, from) : hn::MaskedLoad(mask, kTag, from);
}
template <bool kWhole>
HWY_INLINE void Store(V v, float* to, M mask) {
  if (kWhole)
    hn::StoreU(v, kTag, to);
  else
    hn::BlendedStore(v, mask, kTag, to);
}

// Calls body(first element, channel, mask, whole) over positions [begin, end)
// of a segment that begins at element `at`. With one lane a vector is of
// neighbouring elements and `channel` is theirs; else it is of neighbouring
// channels.
template <class Body>
HWY_INLINE void ForVectors(const ChannelView& v, int64_t at, int64_t group,
                           int64_t begin, int64_t end, const Body& body) {
  const int64_t step = Lanes();
  if (v.lanes == 1) {
    int64_t i = begin;
    const M all = hn::FirstN(kTag, static_cast<size_t>(step));
    for (; i + step <= end; i += step)
      body(at + i, group, all, std::true_type());
    if (i < end)
      body(at + i, group, hn::FirstN(kTag, static_cast<size_t>(end - i)),
           std::false_type());
    return;
  }
  for (int64_t l = 0; l < v.lanes; l += step) {
    const int64_t left = v.lanes - l;
    const M mask = hn::FirstN(kTag, static_cast<size_t>(std::min(step, left)));
    if (left >= step)
      for (int64_t i = begin; i < end; ++i)
        body(at + i * v.lanes + l, group * v.lanes + l, mask, std::true_type());
    else
      for (int64_t i = begin; i < end; ++i)
        body(at + i * v.lanes + l, group * v.lanes + l, mask,
             std::false_type());
  }
}

// Calls body(element of the segment's start, group, begin, end) for the
// stretches of positions [first, last) of all outer * groups * inner.
template <class Body>
HWY_INLINE void ForStretches(const ChannelView& v, int64_t first, int64_t last,
                             const Body& body) {
  while (first < last) {
    const int64_t segment = first / v.inner;
    const int64_t begin = first % v.inner;
    const int64_t end = std::min(v.inner, begin + last - first);
    body(segment * v.inner * v.lanes, segment % v.groups, begin, end);
    first += end - begin;
  }
}

// One lane: the channel's number for all; else those of the vector's channels.
template <bool kWhole>
HWY_INLINE V Of(const ChannelView& v, const float* numbers, int64_t channel,
                M mask) {
  return v.lanes == 1 ? hn::Set(kTag, numbers[channel])
                      : Load<kWhole>(numbers + channel, mask);
}

constexpr int64_t kPiece = 1024;  // positions that are summed as floats

// Adds two vectors of sums to their channels' doubles.
HWY_INLINE void AddSums(const ChannelView& v, int64_t channel, V a, V b,
                        double* sums) {
  float lanes_a[HWY_MAX_BYTES / sizeof(float)];
  float lanes_b[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(a, kTag, lanes_a);
  hn::StoreU(b, kTag, lanes_b);
  const int64_t n =
      v.lanes == 1 ? Lanes() : std::min(Lanes(), v.lanes - channel % v.lanes);
  for (int64_t i = 0; i < n; ++i) {
    double* to = sums + 2 * (v.lanes == 1 ? channel : channel + i);
    to[0] += static_cast<double>(lanes_a[i]);
    to[1] += static_cast<double>(lanes_b[i]);
  }
}

// The two sums of a stretch. With dy: of dy and of dy * (x - center); else of
// x - center and of its square.
template <bool kGrad>
HWY_INLINE void SumStretch(const ChannelView& v, const ChannelSums& s,
                           int64_t at, int64_t group, int64_t begin,
                           int64_t end, double* sums) {
  V a = hn::Zero(kTag), b = hn::Zero(kTag);
  int64_t last = -1;
  const auto add = [&](int64_t i, int64_t channel, M mask, auto whole) {
    constexpr bool kWhole = decltype(whole)::value;
    if (channel != last) {
      if (last >= 0) AddSums(v, last, a, b, sums);
      a = b = hn::Zero(kTag);
      last = channel;
    }
    const V d = hn::Sub(Load<kWhole>(s.x + i, mask),
                        Of<kWhole>(v, s.center, channel, mask));
    const V centered = kWhole ? d : hn::IfThenElseZero(mask, d);
    if (kGrad) {
      const V g = Load<kWhole>(s.dy + i, mask);
      a = hn::Add(a, g);
      b = hn::MulAdd(g, centered, b);
    } else {
      a = hn::Add(a, centered);
      b = hn::MulAdd(centered, centered, b);
    }
  };
  for (int64_t i = begin; i < end; i += kPiece) {
    ForVectors(v, at, group, i, std::min(end, i + kPiece), add);
    AddSums(v, last, a, b, sums);
    a = b = hn::Zero(kTag);
    last = -1;
  }
}

void SumRange(const ChannelView& v, const ChannelSums& s, int64_t first,
              int64_t end, double* sums) {
  ForStretches(v, first, end,
               [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
                 if (s.dy != nullptr)
                   SumStretch<true>(v, s, at, group, begin, stop, sums);
                 else
                   SumStretch<false>(v, s, at, group, begin, stop, sums);
               });
}

void ScaleRange(const ChannelView& v, const float* x, const ChannelTerms& t,
                int64_t first, int64_t end, float* y) {
  ForStretches(v, first, end,
               [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
                 ForVectors(
                     v, at, group, begin, stop,
                     [&](int64_t i, int64_t c, M mask, auto whole) {
                       constexpr bool kWhole = decltype(whole)::value;
                       const V d = hn::Sub(Load<kWhole>(x + i, mask),
                                           Of<kWhole>(v, t.mean, c, mask));
                       Store<kWhole>(
                           hn::MulAdd(d, Of<kWhole>(v, t.factor, c, mask),
                                      Of<kWhole>(v, t.shift, c, mask)),
                           y + i, mask);
                     });
               });
}

void GradRange(const ChannelView& v, const float* x, const float* dy,
               const ChannelGradTerms& t, int64_t first, int64_t end,
               float* dx) {
  ForStretches(
      v, first, end,
      [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
        ForVectors(
            v, at, group, begin, stop,
            [&](int64_t i, int64_t c, M mask, auto whole) {
              constexpr bool kWhole = decltype(whole)::value;
              const V d = hn::Sub(Load<kWhole>(x + i, mask),
                                  Of<kWhole>(v, t.mean, c, mask));
              const V g = hn::Sub(Load<kWhole>(dy + i, mask),
                                  Of<kWhole>(v, t.shift, c, mask));
              Store<kWhole>(
                  hn::Mul(Of<kWhole>(v, t.factor, c, mask),
                          hn::NegMulAdd(d, Of<kWhole>(v, t.slope, c, mask), g)),
                  dx + i, mask);
            });
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(SumRange);
HWY_EXPORT(ScaleRange);
HWY_EXPORT(GradRange);

namespace {

int64_t Positions(const ChannelView& v) { return v.outer * v.groups * v.inner; }

// Positions per thread at least.
int64_t Grain(const ChannelView& v) { return 1 + 16384 / v.lanes; }

// The two sums of every channel, [channels, 2], at the start of `scratch`.
const double* Sums(const ChannelView& v, const ChannelSums& s, void* scratch) {
  const auto run = HWY_DYNAMIC_DISPATCH(SumRange);
  double* sums = static_cast<double*>(scratch);
  const int64_t width = 2 * v.channels();
  const int64_t positions = Positions(v);
  int used = 1;
  ParallelParts([&](int part, int parts) {
    if (part == 0) used = parts;
    double* own = sums + part * width;
    std::fill_n(own, width, 0.0);
    run(v, s, positions * part / parts, positions * (part + 1) / parts, own);
  });
  for (int part = 1; part < used; ++part)
    for (int64_t i = 0; i < width; ++i) sums[i] += sums[part * width + i];
  return sums;
}

}  // namespace

size_t ChannelSumsScratch(const ChannelView& v) {
  return (static_cast<size_t>(Threads()) * 2 + 1) *
         static_cast<size_t>(v.channels()) * sizeof(double);
}

void ChannelMoments(const ChannelView& v, const float* x, void* scratch,
                    float* mean, float* variance) {
  // Twice: differences from an element of the channel give its mean, those
  // from the mean its variance, without numbers that cancel each other.
  const double n = static_cast<double>(v.count());
  float* center = variance;
  for (int64_t c = 0; c < v.channels(); ++c)
    center[c] = x[(c / v.lanes) * v.inner * v.lanes + c % v.lanes];
  const double* sums = Sums(v, {x, nullptr, center}, scratch);
  for (int64_t c = 0; c < v.channels(); ++c)
    mean[c] = static_cast<float>(double{center[c]} + sums[2 * c] / n);
  sums = Sums(v, {x, nullptr, mean}, scratch);
  for (int64_t c = 0; c < v.channels(); ++c) {
    const double rest = sums[2 * c] / n;
    variance[c] =
        static_cast<float>(std::max(0.0, sums[2 * c + 1] / n - rest * rest));
    if (std::isnan(sums[2 * c + 1])) variance[c] = std::nanf("");
  }
}

void ChannelScale(const ChannelView& v, const float* x,
                  const ChannelTerms& terms, float* y) {
  const auto run = HWY_DYNAMIC_DISPATCH(ScaleRange);
  ParallelFor(Positions(v), Grain(v), [&](int64_t begin, int64_t end) {
    run(v, x, terms, begin, end, y);
  });
}

void ChannelGradSums(const ChannelView& v, const float* x, const float* dy,
                     const float* mean, void* scratch, float* sum, float* dot) {
  const double* sums = Sums(v, {x, dy, mean}, scratch);
  for (int64_t c = 0; c < v.channels(); ++c) {
    sum[c] = static_cast<float>(sums[2 * c]);
    dot[c] = static_cast<float>(sums[2 * c + 1]);
  }
}

void ChannelGrad(const ChannelView& v, const float* x, const float* dy,
                 const ChannelGradTerms& terms, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(GradRange);
  ParallelFor(Positions(v), Grain(v), [&](int64_t begin, int64_t end) {
    run(v, x, dy, terms, begin, end, dx);
  });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
