// SPDX-License-Identifier: Apache-2.0
// The rows of the source that a row of results needs are copied into a ring of
// rows with zeros at their ends, which stays in the first cache: so every
// result of a row has the same taps, and the memory is read in one stream. A
// tap is a row of the source and a vector of weights. The gradient by x has as
// many kinds of columns (phases) as its stride.
#include "libcore/kernels/cpu/depthwise_planes.h"

#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#ifndef PD_LIBCORE_KERNELS_CPU_DEPTHWISE_PLANES_ONCE
#define PD_LIBCORE_KERNELS_CPU_DEPTHWISE_PLANES_ONCE
namespace pd {
namespace cpu {
namespace {

// The planes of a thread, and its memory for rows.
struct Planes {
  int64_t begin, end;
  float* rows;
};

}  // namespace
}  // namespace cpu
}  // namespace pd
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/depthwise_planes.cc"
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
constexpr int64_t kLanes = HWY_LANES(float);

constexpr int64_t kMaxTaps = kMaxDepthwiseKernel * kMaxDepthwiseKernel;

// A source row and the weights it is multiplied with, both in vectors.
struct Tap {
  const float *from, *weight;
};

// kCount results that lie `step` apart, in vectors: from[i] of each tap.
template <int kCount>
void Results(const Tap* taps, int64_t count, int64_t from, float* to,
             int64_t step) {
  V sums[kCount];
  for (int i = 0; i < kCount; ++i) sums[i] = hn::Zero(kTag);
  for (int64_t t = 0; t < count; ++t) {
    const V weight = hn::LoadU(kTag, taps[t].weight);
    const float* source = taps[t].from + from * kLanes;
    for (int i = 0; i < kCount; ++i)
      sums[i] =
          hn::MulAdd(hn::LoadU(kTag, source + i * kLanes), weight, sums[i]);
  }
  for (int i = 0; i < kCount; ++i)
    hn::StoreU(sums[i], kTag, to + i * step * kLanes);
}

constexpr int64_t kAtOnce = 8;
constexpr decltype(&Results<1>) kResults[kAtOnce + 1] = {
    nullptr,    Results<1>, Results<2>, Results<3>, Results<4>,
    Results<5>, Results<6>, Results<7>, Results<8>};

// n results, in parts of about the same size.
void Row(const Tap* taps, int64_t count, int64_t n, float* to, int64_t step) {
  const int64_t parts = (n + kAtOnce - 1) / kAtOnce;
  for (int64_t p = 0, i = 0; p < parts; ++p) {
    const int64_t next = n * (p + 1) / parts;
    kResults[next - i](taps, count, i, to + i * step * kLanes, step);
    i = next;
  }
}

// The last rows of a plane with `before` columns of zeros before theirs and
// `after` behind them.
class Ring {
 public:
  Ring(int64_t rows, int64_t width, int64_t before, int64_t after,
       float* memory)
      : rows_(rows), width_(width), before_(before), memory_(memory) {
    stride_ = (before + width + after) * kLanes;
    std::fill_n(memory, rows * stride_, 0.0f);
  }

  void Begin(const float* plane) {
    plane_ = plane;
    next_ = 0;
  }

  // Row `row`, at its column 0. Rows are asked for in order, and none that is
  // older than the `rows` last ones.
  const float* At(int64_t row) {
    for (; next_ <= row; ++next_) {
      const float* from = plane_ + next_ * width_ * kLanes;
      float* to = Place(next_);
      for (int64_t i = 0; i < width_; ++i)
        hn::StoreU(hn::LoadU(kTag, from + i * kLanes), kTag, to + i * kLanes);
    }
    return Place(row);
  }

 private:
  float* Place(int64_t row) {
    return memory_ + row % rows_ * stride_ + before_ * kLanes;
  }

  int64_t rows_, width_, before_, stride_;
  float* memory_;
  const float* plane_ = nullptr;
  int64_t next_ = 0;
};

// Columns that a row of the source lacks on the right.
int64_t Behind(int64_t last, int64_t width) {
  return std::max<int64_t>(last - (width - 1), 0);
}

Ring SourceRing(const DepthwiseGeometry& g, float* memory) {
  const int64_t last = (g.out_w - 1) * g.stride_w + g.kernel_w - 1 - g.pad_left;
  return {g.kernel_h, g.in_w, g.pad_left, Behind(last, g.in_w), memory};
}

// The column of the gradient that tap k of the result in column `w` reads.
int64_t GradColumn(const DepthwiseGeometry& g, int64_t w, int64_t k) {
  return (w + g.pad_left - k) / g.stride_w;
}

Ring GradRing(const DepthwiseGeometry& g, float* memory) {
  const int64_t before =
      std::max<int64_t>((g.kernel_w - 1 - g.pad_left) / g.stride_w, 0);
  return {g.kernel_h, g.out_w, before,
          Behind(GradColumn(g, g.in_w - 1, 0), g.out_w), memory};
}

void DataPlane(const DepthwiseGeometry& g, const float* w, Ring* dy,
               float* dx) {
  for (int64_t h = 0; h < g.in_h; ++h) {
    for (int64_t phase = 0; phase < std::min(g.stride_w, g.in_w); ++phase) {
      Tap taps[kMaxTaps];
      int64_t count = 0;
      for (int64_t k = g.kernel_h - 1; k >= 0; --k) {
        const int64_t at = h + g.pad_top - k;
        if (at < 0 || at % g.stride_h != 0 || at / g.stride_h >= g.out_h)
          continue;
        const float* row = dy->At(at / g.stride_h);
        for (int64_t j = 0; j < g.kernel_w; ++j)
          if ((phase + g.pad_left - j) % g.stride_w == 0)
            taps[count++] = {row + GradColumn(g, phase, j) * kLanes,
                             w + (k * g.kernel_w + j) * kLanes};
      }
      Row(taps, count, (g.in_w - phase + g.stride_w - 1) / g.stride_w,
          dx + (h * g.in_w + phase) * kLanes, g.stride_w);
    }
  }
}

// sums[0..kTaps) += dy[i] x[i * step + k], i < n.
template <int kTaps>
void AddProducts(const float* dy, const float* x, int64_t n, int64_t step,
                 float* sums) {
  // As many sums as hide the latency of one.
  constexpr int kRows = kTaps > 3 ? 2 : kTaps > 1 ? 3 : 4;
  V s[kRows][kTaps];
  for (int j = 0; j < kRows; ++j)
    for (int k = 0; k < kTaps; ++k)
      s[j][k] = j == 0 ? hn::LoadU(kTag, sums + k * kLanes) : hn::Zero(kTag);
  const auto add = [&](int64_t i, V* row) HWY_ATTR {
    const V g = hn::LoadU(kTag, dy + i * kLanes);
    for (int k = 0; k < kTaps; ++k)
      row[k] =
          hn::MulAdd(g, hn::LoadU(kTag, x + (i * step + k) * kLanes), row[k]);
  };
  int64_t i = 0;
  for (; i + kRows <= n; i += kRows)
    for (int j = 0; j < kRows; ++j) add(i + j, s[j]);
  for (; i < n; ++i) add(i, s[0]);
  for (int k = 0; k < kTaps; ++k) {
    for (int j = 1; j < kRows; ++j) s[0][k] = hn::Add(s[0][k], s[j][k]);
    hn::StoreU(s[0][k], kTag, sums + k * kLanes);
  }
}

constexpr decltype(&AddProducts<1>) kAddProducts[kMaxDepthwiseKernel + 1] = {
    nullptr,        AddProducts<1>, AddProducts<2>, AddProducts<3>,
    AddProducts<4>, AddProducts<5>, AddProducts<6>, AddProducts<7>};

void WeightPlane(const DepthwiseGeometry& g, Ring* x, const float* dy,
                 float* dw) {
  std::fill_n(dw, g.taps() * kLanes, 0.0f);
  for (int64_t h = 0; h < g.out_h; ++h) {
    for (int64_t k = 0; k < g.kernel_h; ++k) {
      const int64_t from = h * g.stride_h - g.pad_top + k;
      if (from < 0 || from >= g.in_h) continue;
      kAddProducts[g.kernel_w](dy + h * g.out_w * kLanes,
                               x->At(from) - g.pad_left * kLanes, g.out_w,
                               g.stride_w, dw + k * g.kernel_w * kLanes);
    }
  }
}

// Floats of both rings, each of whose rows reaches as far as the windows do.
size_t RowFloats(const DepthwiseGeometry& g) {
  const int64_t width = g.pad_left + g.in_w + g.out_w * g.stride_w + g.kernel_w;
  return static_cast<size_t>(2 * g.kernel_h * width * kLanes);
}

void GradientPlanes(const DepthwiseGeometry& g, const DepthwiseInputs& in,
                    Planes planes, float* dx, float* dw) {
  const int64_t size = g.in_h * g.in_w * kLanes;
  Ring source = SourceRing(g, planes.rows);
  Ring grads = GradRing(g, planes.rows + RowFloats(g) / 2);
  for (int64_t p = planes.begin; p < planes.end; ++p) {
    const float* dy = in.dy + p * g.out_h * g.out_w * kLanes;
    if (dw != nullptr) {
      source.Begin(in.x + p * size);
      WeightPlane(g, &source, dy, dw + p * g.taps() * kLanes);
    }
    if (dx != nullptr) {
      grads.Begin(dy);
      DataPlane(g, in.w + p % g.blocks * g.taps() * kLanes, &grads,
                dx + p * size);
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

HWY_EXPORT(GradientPlanes);
HWY_EXPORT(RowFloats);

size_t DepthwiseScratch(const DepthwiseGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(RowFloats)(g) * sizeof(float) *
         static_cast<size_t>(Threads());
}

void DepthwiseGradients(const DepthwiseGeometry& g, const DepthwiseInputs& in,
                        float* scratch, float* dx, float* dw) {
  const int64_t all = g.batch * g.blocks;
  const size_t rows = HWY_DYNAMIC_DISPATCH(RowFloats)(g);
  const auto run = HWY_DYNAMIC_DISPATCH(GradientPlanes);
  ParallelParts([&](int64_t part, int64_t parts) {
    run(g, in,
        {all * part / parts, all * (part + 1) / parts,
         scratch + static_cast<size_t>(part) * rows},
        dx, dw);
  });
}

}  // namespace cpu
}  // namespace pd
#endif
