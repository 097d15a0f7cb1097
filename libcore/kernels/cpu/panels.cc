// SPDX-License-Identifier: Apache-2.0
// Threads share the panels. The input channels are taken in slabs whose pixels,
// gathered as [block of channels, tap, pixel, lane] by each thread for itself,
// stay in the second cache beside the slab of one panel and the slab of the
// next, which is asked for bit by bit while this one is multiplied.
#include "libcore/kernels/cpu/panels.h"

#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/panels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/panel_product.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;

int64_t Quotient(int64_t n, int64_t by) { return (n + by - 1) / by; }

// How the work of a geometry is laid out.
struct Sizes {
  explicit Sizes(const ConvGeometry& g)
      : batch(g.batch),
        in(Quotient(g.in_channels, kLanes)),
        out(Quotient(g.out_channels, kLanes)),
        in_pixels(g.axes[0].in * g.axes[1].in),
        pixels(g.axes[0].out * g.axes[1].out),
        taps(g.axes[0].kernel * g.axes[1].kernel),
        panels(Quotient(out, kWide)),
        parts(Quotient(pixels, kRows)) {
    constexpr int64_t kRowsOfSlab = 1024;  // 128 KB of a panel of AVX-512
    slab = std::clamp<int64_t>(kRowsOfSlab / (taps * kLanes), 1, in);
  }

  int64_t Gathered() const { return slab * taps * batch * pixels * kLanes; }
  // Of the weights of one block of input channels.
  int64_t BlockWeights() const { return taps * kLanes * kWide * kLanes; }
  int64_t PanelWeights() const { return in * BlockWeights(); }

  int64_t batch, in, out;  // vectors of channels
  int64_t in_pixels, pixels, taps;
  int64_t panels, parts;  // parts: of the pixels of one image
  int64_t slab;           // vectors of input channels in a slab
};

// A line of `axis` as the tap `k` sees it.
void GatherLine(const WindowAxis& axis, int64_t k, const float* from,
                float* to) {
  const auto [begin, end] = axis.Valid(k);
  std::fill(to, to + begin * kLanes, 0.0f);
  for (int64_t i = begin; i < end; ++i)
    hn::StoreU(hn::LoadU(kTag, from + axis.Source(i, k) * kLanes), kTag,
               to + i * kLanes);
  std::fill(to + end * kLanes, to + axis.out * kLanes, 0.0f);
}

// The pixels of `count` blocks of channels from `first`:
// [block, tap, image, pixel, lane].
void Gather(const ConvGeometry& g, const Sizes& s, const float* x,
            int64_t first, int64_t count, float* to) {
  const WindowAxis &rows = g.axes[0], &columns = g.axes[1];
  const int64_t line = columns.out * kLanes;
  for (int64_t c = first; c < first + count; ++c)
    for (int64_t tap = 0; tap < s.taps; ++tap) {
      const int64_t down = tap / columns.kernel, across = tap % columns.kernel;
      const auto [begin, end] = rows.Valid(down);
      for (int64_t n = 0; n < s.batch; ++n) {
        const float* plane = x + (n * s.in + c) * s.in_pixels * kLanes;
        for (int64_t row = 0; row < rows.out; ++row, to += line) {
          if (row < begin || row >= end)
            std::fill(to, to + line, 0.0f);
          else
            GatherLine(columns, across,
                       plane + rows.Source(row, down) * columns.in * kLanes,
                       to);
        }
      }
    }
}

// Bias, residual and bounds, of `count` pixels from `at` in y.
void Finish(const ConvGeometry& g, const ConvArgs& args, int64_t block,
            int64_t at, int64_t count) {
  const int64_t channel = block * kLanes;
  const int64_t channels = std::min(g.out_channels - channel, kLanes);
  const auto there = hn::FirstN(kTag, static_cast<size_t>(channels));
  const auto bias = args.bias != nullptr
                        ? hn::MaskedLoad(there, kTag, args.bias + channel)
                        : hn::Zero(kTag);
  const auto low = hn::Set(kTag, args.low), high = hn::Set(kTag, args.high);
  for (int64_t i = at; i < at + count * kLanes; i += kLanes) {
    auto v = hn::Add(hn::LoadU(kTag, args.y + i), bias);
    if (args.residual != nullptr)
      v = hn::Add(v, hn::LoadU(kTag, args.residual + i));
    hn::StoreU(hn::Min(high, hn::Max(low, v)), kTag, args.y + i);
  }
}

// One slab of one panel, of `blocks` blocks of input channels.
struct Slab {
  const float *pixels, *weights;
  int64_t panel, blocks;
  bool first, last;   // of the panel's slabs
  const float* next;  // weights that will be wanted; null: none
};

void MultiplySlab(const ConvGeometry& g, const ConvArgs& args, const Sizes& s,
                  const Slab& slab) {
  const int64_t block = slab.panel * kWide;
  const int64_t vectors = std::min(kWide, s.out - block);
  const int64_t step = s.batch * s.pixels * kLanes;
  const int64_t lines =
      slab.next == nullptr
          ? 0
          : Quotient(kWide * kLanes * kLanes / kLineFloats, s.batch * s.parts);
  const int64_t asked = slab.blocks * s.taps * lines * kLineFloats;
  PanelAhead ahead{slab.next, lines};
  for (int64_t n = 0; n < s.batch; ++n) {
    const int64_t plane = (n * s.out + block) * s.pixels * kLanes;
    for (int64_t p = 0; p < s.parts; ++p, ahead.from += asked) {
      const int64_t first = s.pixels * p / s.parts;
      const int64_t count = s.pixels * (p + 1) / s.parts - first;
      const PanelArgs product{slab.pixels + (n * s.pixels + first) * kLanes,
                              step,
                              slab.blocks * s.taps,
                              slab.weights,
                              kWide * kLanes,
                              args.y + plane + first * kLanes,
                              kLanes,
                              s.pixels * kLanes,
                              !slab.first};
      if (vectors == kWide)
        PanelProduct<kWide>(count, product, ahead);
      else
        PanelProduct<1>(count, product, ahead);
    }
    for (int64_t v = 0; slab.last && v < vectors; ++v)
      Finish(g, args, block + v, plane + v * s.pixels * kLanes, s.pixels);
  }
}

void RunPanels(const ConvGeometry& g, const ConvArgs& args, int64_t part,
               int64_t parts) {
  const Sizes s(g);
  const int64_t begin = s.panels * part / parts;
  const int64_t end = s.panels * (part + 1) / parts;
  float* pixels = args.scratch + part * s.Gathered();
  if (begin == end) return;
  for (int64_t c = 0; c < s.in; c += s.slab) {
    Slab slab;
    slab.pixels = pixels;
    slab.blocks = std::min(s.slab, s.in - c);
    slab.first = c == 0;
    slab.last = c + slab.blocks == s.in;
    Gather(g, s, args.x, c, slab.blocks, pixels);
    const auto weights = [&](int64_t panel, int64_t block) {
      return args.weights + panel * s.PanelWeights() + block * s.BlockWeights();
    };
    for (int64_t panel = begin; panel < end; ++panel) {
      slab.panel = panel;
      slab.weights = weights(panel, c);
      slab.next = panel + 1 < end ? weights(panel + 1, c)
                  : slab.last     ? nullptr
                                  : weights(begin, c + slab.blocks);
      MultiplySlab(g, args, s, slab);
    }
  }
}

int64_t GatheredFloats(const ConvGeometry& g) { return Sizes(g).Gathered(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(GatheredFloats);
HWY_EXPORT(RunPanels);

int64_t PanelScratch(const ConvGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(GatheredFloats)(g) * Threads();
}

void ConvPanels(const ConvGeometry& g, const ConvArgs& args) {
  const auto run = HWY_DYNAMIC_DISPATCH(RunPanels);
  ParallelParts(
      [&](int64_t part, int64_t parts) { run(g, args, part, parts); });
}

}  // namespace cpu
}  // namespace pd
#endif
