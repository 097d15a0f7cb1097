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
#include "libcore/kernels/cpu/half_vectors.inc"

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
template <bool kWhole, typename T>
HWY_INLINE V Load(const T* from, M mask) {
  return kWhole ? LoadWide(from) : LoadSome(from, mask);
}
template <bool kWhole, typename T>
HWY_INLINE void Store(V v, T* to, M mask) {
  if (kWhole)
    StoreNarrow(v, to);
  else
    StoreSome(v, to, mask);
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

template <bool kWhole>
HWY_INLINE V Normalized(const ChannelView& v, V d, const ChannelTerms& t,
                        int64_t channel, M mask) {
  return hn::MulAdd(d, Of<kWhole>(v, t.factor, channel, mask),
                    Of<kWhole>(v, t.shift, channel, mask));
}

// dy where the clip let y through, else 0.
HWY_INLINE V Passed(V dy, V y, V top) {
  const M off = hn::Or(hn::Le(y, hn::Zero(kTag)), hn::Ge(y, top));
  return hn::IfThenZeroElse(off, dy);
}

// The two sums of a stretch. With dy: of g and of g * (x - mean), g being dy
// where the clip let it through; else of x - mean and of its square.
template <bool kGrad, bool kClip, typename T>
HWY_INLINE void SumStretch(const ChannelView& v, const ChannelPass<T>& s,
                           int64_t at, int64_t group, int64_t begin,
                           int64_t end, double* sums) {
  V a = hn::Zero(kTag), b = hn::Zero(kTag);
  const V top = hn::Set(kTag, s.clip.top);
  int64_t last = -1;
  const auto add = [&](int64_t i, int64_t channel, M mask, auto whole) {
    constexpr bool kWhole = decltype(whole)::value;
    if (channel != last) {
      if (last >= 0) AddSums(v, last, a, b, sums);
      a = b = hn::Zero(kTag);
      last = channel;
    }
    const V d = hn::Sub(Load<kWhole>(s.x + i, mask),
                        Of<kWhole>(v, s.terms.mean, channel, mask));
    const V centered = kWhole ? d : hn::IfThenElseZero(mask, d);
    if (kGrad) {
      V g = Load<kWhole>(s.dy + i, mask);
      if (kClip)
        g = Passed(g, Normalized<kWhole>(v, d, s.terms, channel, mask), top);
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

template <typename T>
HWY_INLINE void SumsOf(const ChannelView& v, const ChannelPass<T>& s,
                       int64_t first, int64_t end, double* sums) {
  ForStretches(v, first, end,
               [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
                 if (s.dy == nullptr)
                   SumStretch<false, false>(v, s, at, group, begin, stop, sums);
                 else if (s.clip.on)
                   SumStretch<true, true>(v, s, at, group, begin, stop, sums);
                 else
                   SumStretch<true, false>(v, s, at, group, begin, stop, sums);
               });
}

template <bool kClip, typename T>
HWY_INLINE void ScaleStretches(const ChannelView& v, const T* x,
                               const ChannelTerms& t, float bound,
                               int64_t first, int64_t end, T* y) {
  const V top = hn::Set(kTag, bound), zero = hn::Zero(kTag);
  ForStretches(v, first, end,
               [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
                 ForVectors(
                     v, at, group, begin, stop,
                     [&](int64_t i, int64_t c, M mask, auto whole) {
                       constexpr bool kWhole = decltype(whole)::value;
                       const V d = hn::Sub(Load<kWhole>(x + i, mask),
                                           Of<kWhole>(v, t.mean, c, mask));
                       V out = Normalized<kWhole>(v, d, t, c, mask);
                       if (kClip) {
                         out = hn::IfThenZeroElse(hn::Le(out, zero), out);
                         out = hn::IfThenElse(hn::Gt(out, top), top, out);
                       }
                       Store<kWhole>(out, y + i, mask);
                     });
               });
}

template <typename T>
HWY_INLINE void ScaleOf(const ChannelView& v, const T* x, const ChannelTerms& t,
                        const ChannelClip& clip, int64_t first, int64_t end,
                        T* y) {
  if (clip.on)
    ScaleStretches<true>(v, x, t, clip.top, first, end, y);
  else
    ScaleStretches<false>(v, x, t, clip.top, first, end, y);
}

template <bool kClip, typename T>
HWY_INLINE void GradStretches(const ChannelView& v, const ChannelPass<T>& s,
                              const ChannelGradNumbers& g, int64_t first,
                              int64_t end, T* dx) {
  const V top = hn::Set(kTag, s.clip.top);
  const ChannelTerms& t = s.terms;
  ForStretches(
      v, first, end,
      [&](int64_t at, int64_t group, int64_t begin, int64_t stop) {
        ForVectors(
            v, at, group, begin, stop,
            [&](int64_t i, int64_t c, M mask, auto whole) {
              constexpr bool kWhole = decltype(whole)::value;
              const V d = hn::Sub(Load<kWhole>(s.x + i, mask),
                                  Of<kWhole>(v, t.mean, c, mask));
              V in = Load<kWhole>(s.dy + i, mask);
              if (kClip)
                in = Passed(in, Normalized<kWhole>(v, d, t, c, mask), top);
              const V rest = hn::Sub(in, Of<kWhole>(v, g.sum, c, mask));
              Store<kWhole>(
                  hn::Mul(
                      Of<kWhole>(v, t.factor, c, mask),
                      hn::NegMulAdd(d, Of<kWhole>(v, g.dot, c, mask), rest)),
                  dx + i, mask);
            });
      });
}

template <typename T>
HWY_INLINE void GradOf(const ChannelView& v, const ChannelPass<T>& s,
                       const ChannelGradNumbers& g, int64_t first, int64_t end,
                       T* dx) {
  if (s.clip.on)
    GradStretches<true>(v, s, g, first, end, dx);
  else
    GradStretches<false>(v, s, g, first, end, dx);
}

// Functions called from outside, by the type of the data.
#define PD_CHANNEL_RANGES(T, Name)                                      \
  void SumRange##Name(const ChannelView& v, const ChannelPass<T>& s,    \
                      int64_t first, int64_t end, double* sums) {       \
    SumsOf(v, s, first, end, sums);                                     \
  }                                                                     \
  void ScaleRange##Name(const ChannelView& v, const T* x,               \
                        const ChannelTerms& t, const ChannelClip& clip, \
                        int64_t first, int64_t end, T* y) {             \
    ScaleOf(v, x, t, clip, first, end, y);                              \
  }                                                                     \
  void GradRange##Name(const ChannelView& v, const ChannelPass<T>& s,   \
                       const ChannelGradNumbers& g, int64_t first,      \
                       int64_t end, T* dx) {                            \
    GradOf(v, s, g, first, end, dx);                                    \
  }
PD_CHANNEL_RANGES(float, Floats)
PD_CHANNEL_RANGES(BFloat16, Brains)
#undef PD_CHANNEL_RANGES

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(SumRangeFloats);
HWY_EXPORT(ScaleRangeFloats);
HWY_EXPORT(GradRangeFloats);
HWY_EXPORT(SumRangeBrains);
HWY_EXPORT(ScaleRangeBrains);
HWY_EXPORT(GradRangeBrains);

namespace {

// The functions for data of type T.
auto SumRange(float) { return HWY_DYNAMIC_DISPATCH(SumRangeFloats); }
auto SumRange(BFloat16) { return HWY_DYNAMIC_DISPATCH(SumRangeBrains); }
auto ScaleRange(float) { return HWY_DYNAMIC_DISPATCH(ScaleRangeFloats); }
auto ScaleRange(BFloat16) { return HWY_DYNAMIC_DISPATCH(ScaleRangeBrains); }
auto GradRange(float) { return HWY_DYNAMIC_DISPATCH(GradRangeFloats); }
auto GradRange(BFloat16) { return HWY_DYNAMIC_DISPATCH(GradRangeBrains); }

int64_t Positions(const ChannelView& v) { return v.outer * v.groups * v.inner; }

// Positions per thread at least.
int64_t Grain(const ChannelView& v) { return 1 + 16384 / v.lanes; }

// Groups for everybody: then each thread has groups of its own, and what it
// has just summed is still in its cache when it is normalised.
bool HasGroups(const ChannelView& v) { return v.groups >= 2 * Threads(); }

template <typename Body>
void ForGroups(const ChannelView& v, const Body& body) {
  const int64_t grain = 1 + Grain(v) / (v.outer * v.inner);
  ParallelFor(v.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) body(group);
  });
}

// Calls body(first, end) for the positions of a group.
template <typename Body>
void ForPositions(const ChannelView& v, int64_t group, const Body& body) {
  for (int64_t o = 0; o < v.outer; ++o) {
    const int64_t first = (o * v.groups + group) * v.inner;
    body(first, first + v.inner);
  }
}

// The two sums of every channel of a group, [channels, 2].
template <typename T>
void SumGroup(const ChannelView& v, const ChannelPass<T>& s, int64_t group,
              double* sums) {
  const auto run = SumRange(T());
  std::fill_n(sums + 2 * group * v.lanes, 2 * v.lanes, 0.0);
  ForPositions(v, group, [&](int64_t first, int64_t end) {
    run(v, s, first, end, sums);
  });
}

// The two sums of all channels, at the start of `scratch`.
template <typename T>
void SumAll(const ChannelView& v, const ChannelPass<T>& s, double* sums) {
  const auto run = SumRange(T());
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
}

struct Range {
  int64_t begin, end;  // channels
};

Range ChannelsOf(const ChannelView& v, int64_t group) {
  return {group * v.lanes, (group + 1) * v.lanes};
}

// The moments from sums around `center`. False where the center was so far
// from the mean that the variance lost digits: ask again around the mean.
bool ReadMoments(const ChannelView& v, const double* sums, Range channels,
                 const float* center, const ChannelNumbers& to) {
  const double n = static_cast<double>(v.count());
  bool exact = true;
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    const double rest = sums[2 * c] / n;
    const double squares = sums[2 * c + 1] / n;
    const double spread = squares - rest * rest;
    to.mean[c] = static_cast<float>(double{center[c]} + rest);
    to.variance[c] = static_cast<float>(
        std::isnan(spread) ? std::nan("") : std::max(0.0, spread));
    exact = exact && !(rest * rest > spread);
  }
  return exact;
}

// A center for each channel: the mean of the first positions of its group.
template <typename T>
void FirstMeans(const ChannelView& v, const T* x, Range channels, double* sums,
                float* center) {
  const auto run = SumRange(T());
  const int64_t n = std::min(v.inner, int64_t{1024});
  for (int64_t c = channels.begin; c < channels.end; ++c)
    center[c] = x[(c / v.lanes) * v.inner * v.lanes + c % v.lanes];
  std::fill(sums + 2 * channels.begin, sums + 2 * channels.end, 0.0);
  for (int64_t g = channels.begin / v.lanes; g < channels.end / v.lanes; ++g)
    run(v, {x, nullptr, {center, nullptr, nullptr}, {}}, g * v.inner,
        g * v.inner + n, sums);
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    const double mean =
        double{center[c]} + sums[2 * c] / static_cast<double>(n);
    if (std::isfinite(mean)) center[c] = static_cast<float>(mean);
  }
}

// sum(center) fills the sums of these channels around a center.
template <typename T, typename Sum>
void Moments(const ChannelView& v, const T* x, Range channels, double* sums,
             const ChannelNumbers& numbers, const Sum& sum) {
  float* const center =
      reinterpret_cast<float*>(sums + Threads() * 2 * v.channels());
  FirstMeans(v, x, channels, sums, center);
  sum(ChannelPass<T>{x, nullptr, {center, nullptr, nullptr}, {}});
  if (ReadMoments(v, sums, channels, center, numbers)) return;
  std::copy(numbers.mean + channels.begin, numbers.mean + channels.end,
            center + channels.begin);
  sum(ChannelPass<T>{x, nullptr, {center, nullptr, nullptr}, {}});
  ReadMoments(v, sums, channels, center, numbers);
}

}  // namespace

size_t ChannelScratch(const ChannelView& v) {
  // Sums by thread, and the centers.
  return (static_cast<size_t>(Threads()) * 2 + 1) *
         static_cast<size_t>(v.channels()) * sizeof(double);
}

template <typename T>
void NormalizeChannels(const ChannelView& v, const T* x,
                       const ChannelClip& clip, void* scratch,
                       const ChannelNumbers& numbers, FillChannels terms,
                       T* y) {
  double* const sums = static_cast<double*>(scratch);
  const ChannelTerms t{numbers.mean, numbers.factor, numbers.shift};
  if (!HasGroups(v)) {
    Moments(v, x, {0, v.channels()}, sums, numbers,
            [&](const ChannelPass<T>& pass) { SumAll(v, pass, sums); });
    terms(0, v.channels());
    ScaleChannels(v, x, t, clip, y);
    return;
  }
  const auto scale = ScaleRange(T());
  ForGroups(v, [&](int64_t group) {
    const Range own = ChannelsOf(v, group);
    Moments(v, x, own, sums, numbers, [&](const ChannelPass<T>& pass) {
      SumGroup(v, pass, group, sums);
    });
    terms(own.begin, own.end);
    ForPositions(v, group, [&](int64_t first, int64_t end) {
      scale(v, x, t, clip, first, end, y);
    });
  });
}

template <typename T>
void ScaleChannels(const ChannelView& v, const T* x, const ChannelTerms& t,
                   const ChannelClip& clip, T* y) {
  const auto run = ScaleRange(T());
  ParallelFor(Positions(v), Grain(v), [&](int64_t begin, int64_t end) {
    run(v, x, t, clip, begin, end, y);
  });
}

template <typename T>
void NormalizeChannelsGrad(const ChannelView& v, const ChannelPass<T>& pass,
                           void* scratch, const ChannelGradNumbers& numbers,
                           FillChannels means, T* dx) {
  double* const sums = static_cast<double*>(scratch);
  const auto run = GradRange(T());
  const auto finish = [&](Range channels) {
    for (int64_t c = channels.begin; c < channels.end; ++c) {
      numbers.sum[c] = static_cast<float>(sums[2 * c]);
      numbers.dot[c] = static_cast<float>(sums[2 * c + 1]);
    }
    means(channels.begin, channels.end);
  };
  if (HasGroups(v)) {
    ForGroups(v, [&](int64_t group) {
      SumGroup(v, pass, group, sums);
      finish(ChannelsOf(v, group));
      if (dx == nullptr) return;
      ForPositions(v, group, [&](int64_t first, int64_t end) {
        run(v, pass, numbers, first, end, dx);
      });
    });
    return;
  }
  SumAll(v, pass, sums);
  finish({0, v.channels()});
  if (dx == nullptr) return;
  ParallelFor(Positions(v), Grain(v), [&](int64_t begin, int64_t end) {
    run(v, pass, numbers, begin, end, dx);
  });
}

#define PD_CHANNELS_OF(T)                                                   \
  template void NormalizeChannels(const ChannelView&, const T*,             \
                                  const ChannelClip&, void*,                \
                                  const ChannelNumbers&, FillChannels, T*); \
  template void ScaleChannels(const ChannelView&, const T*,                 \
                              const ChannelTerms&, const ChannelClip&, T*); \
  template void NormalizeChannelsGrad(                                      \
      const ChannelView&, const ChannelPass<T>&, void*,                     \
      const ChannelGradNumbers&, FillChannels, T*);
PD_CHANNELS_OF(float)
PD_CHANNELS_OF(BFloat16)
#undef PD_CHANNELS_OF

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
