// SPDX-License-Identifier: Apache-2.0
// The tiles are taken in blocks whose transformed pixels stay in the second
// cache. A unit of work is a block of tiles and two vectors of output channels:
// at each point of the transform a product of matrices, then the inverse
// transform of its results. Threads take contiguous units in order of blocks,
// so where there are fewer blocks than threads each transforms its block itself
// (it costs little) and reads its own part of the weights, which is what takes
// the time then.
#include "libcore/kernels/cpu/winograd.h"

#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#ifndef PD_LIBCORE_KERNELS_CPU_WINOGRAD_ONCE
#define PD_LIBCORE_KERNELS_CPU_WINOGRAD_ONCE
namespace pd {
namespace cpu {
namespace {

constexpr double kA4 = 0.625, kB4 = 1.5;
int64_t Quotient(int64_t n, int64_t by) { return (n + by - 1) / by; }

// A part of the units, and its thread's memory.
struct Part {
  int64_t begin, end;
  float* memory;
};

}  // namespace
}  // namespace cpu
}  // namespace pd
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/winograd.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/panel_product.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<decltype(kTag)>;
constexpr int64_t kAhead = 1024;  // floats that are asked for ahead of use

HWY_INLINE V Load(const float* from) { return hn::LoadU(kTag, from); }
HWY_INLINE V Number(double value) {
  return hn::Set(kTag, static_cast<float>(value));
}

// How the work of a geometry is laid out.
struct Blocks {
  explicit Blocks(const WinogradGeometry& g) {
    // Half of a second cache of today's servers.
    constexpr int64_t kPixelBytes = 1 << 20;
    in = Quotient(g.in_channels, kLanes);
    out = Quotient(g.out_channels, kLanes);
    wide = Quotient(out, kWide);
    const int64_t bytes = g.Points() * in * kLanes * 4;
    const int64_t most = std::max(kPixelBytes / bytes, kRows);
    count = Quotient(g.Tiles(), most);
    tiles = Quotient(g.Tiles(), count);
  }

  int64_t in, out;       // vectors of channels
  int64_t wide;          // units of a block of tiles
  int64_t count, tiles;  // blocks of tiles, and tiles of one at most
};

int64_t PixelFloats(const WinogradGeometry& g, const Blocks& b) {
  return g.Points() * b.in * b.tiles * kLanes;
}

int64_t ScratchFloats(const WinogradGeometry& g) {
  const Blocks b(g);
  return PixelFloats(g, b) + g.Points() * b.tiles * kWide * kLanes;
}

int64_t WeightFloats(const WinogradGeometry& g) {
  const Blocks b(g);
  return b.out * g.Points() * b.in * kLanes * kLanes;
}

// B d, of vectors that lie `step` apart.
template <int kTile>
HWY_INLINE void TransformLine(const V* d, int64_t step, V* to,
                              int64_t to_step) {
  const auto at = [&](int64_t i) HWY_ATTR { return d[i * step]; };
  const auto set = [&](int64_t i, V v) HWY_ATTR { to[i * to_step] = v; };
  if constexpr (kTile == 2) {
    set(0, hn::Sub(at(2), at(0)));
    set(1, hn::Add(at(2), at(1)));
    set(2, hn::Sub(at(2), at(1)));
    set(3, hn::Sub(at(3), at(1)));
  } else {
    constexpr double aa = kA4 * kA4, bb = kB4 * kB4;
    const V sum = Number(-(aa + bb)), product = Number(aa * bb);
    const V na = Number(-aa), nb = Number(-bb), a = Number(kA4),
            b = Number(kB4);
    set(0, hn::MulAdd(sum, at(2), hn::MulAdd(product, at(0), at(4))));
    const V even_a = hn::MulAdd(nb, at(2), at(4));
    const V odd_a = hn::Mul(a, hn::MulAdd(nb, at(1), at(3)));
    set(1, hn::Add(even_a, odd_a));
    set(2, hn::Sub(even_a, odd_a));
    const V even_b = hn::MulAdd(na, at(2), at(4));
    const V odd_b = hn::Mul(b, hn::MulAdd(na, at(1), at(3)));
    set(3, hn::Add(even_b, odd_b));
    set(4, hn::Sub(even_b, odd_b));
    set(5, hn::MulAdd(sum, at(3), hn::MulAdd(product, at(1), at(5))));
  }
}

// A' m.
template <int kTile>
HWY_INLINE void InverseLine(const V* m, int64_t step, V* to, int64_t to_step) {
  const auto at = [&](int64_t i) HWY_ATTR { return m[i * step]; };
  const auto set = [&](int64_t i, V v) HWY_ATTR { to[i * to_step] = v; };
  const V sum_a = hn::Add(at(1), at(2)), difference_a = hn::Sub(at(1), at(2));
  if constexpr (kTile == 2) {
    set(0, hn::Add(at(0), sum_a));
    set(1, hn::Add(difference_a, at(3)));
  } else {
    constexpr double a = kA4, b = kB4;
    const V sum_b = hn::Add(at(3), at(4)), difference_b = hn::Sub(at(3), at(4));
    const auto both = [&](int power, V of_a, V of_b) HWY_ATTR {
      double pa = 1, pb = 1;
      for (int i = 0; i < power; ++i) pa *= a, pb *= b;
      return hn::MulAdd(Number(pa), of_a, hn::Mul(Number(pb), of_b));
    };
    set(0, hn::Add(at(0), hn::Add(sum_a, sum_b)));
    set(1, both(1, difference_a, difference_b));
    set(2, both(2, sum_a, sum_b));
    set(3, hn::Add(at(5), both(3, difference_a, difference_b)));
  }
}

// Where a tile lies.
struct Tile {
  int64_t image, top, left;  // of its results
};

Tile TileAt(const WinogradGeometry& g, int64_t index) {
  const int64_t columns = Quotient(g.out_w, g.tile);
  const int64_t rows = Quotient(g.out_h, g.tile);
  return {index / (columns * rows), index / columns % rows * g.tile,
          index % columns * g.tile};
}

// B d B' of the tile whose pixels are at(row, column).
template <int kTile, typename At>
HWY_INLINE void TransformPixels(const At& at, float* to, int64_t point_step) {
  constexpr int kSize = kTile + 2;
  V lines[kSize * kSize];
#pragma GCC unroll 6
  for (int i = 0; i < kSize; ++i) {
    V pixels[kSize];
#pragma GCC unroll 6
    for (int j = 0; j < kSize; ++j) pixels[j] = at(i, j);
    TransformLine<kTile>(pixels, 1, lines + i * kSize, 1);
  }
#pragma GCC unroll 6
  for (int j = 0; j < kSize; ++j) {
    V points[kSize];
    TransformLine<kTile>(lines + j, kSize, points, 1);
#pragma GCC unroll 6
    for (int i = 0; i < kSize; ++i)
      hn::StoreU(points[i], kTag, to + (i * kSize + j) * point_step);
  }
}

template <int kTile>
void TransformTile(const WinogradGeometry& g, const float* plane,
                   const Tile& tile, float* to, int64_t point_step) {
  constexpr int kSize = kTile + 2;
  const int64_t top = tile.top - g.pad_top, left = tile.left - g.pad_left;
  const float* first = plane + (top * g.in_w + left) * kLanes;
  const auto pixel = [&](int64_t i, int64_t j) HWY_ATTR {
    return Load(first + (i * g.in_w + j) * kLanes);
  };
  if (top >= 0 && left >= 0 && top + kSize <= g.in_h &&
      left + kSize <= g.in_w) {
    TransformPixels<kTile>(pixel, to, point_step);
    return;
  }
  TransformPixels<kTile>(
      [&](int64_t i, int64_t j) HWY_ATTR {
        const int64_t h = top + i, w = left + j;
        return h >= 0 && h < g.in_h && w >= 0 && w < g.in_w ? pixel(i, j)
                                                            : hn::Zero(kTag);
      },
      to, point_step);
}

// The pixels of `count` tiles as [block of channels, point, tile, lane].
template <int kTile>
void TransformTiles(const WinogradGeometry& g, const Blocks& b, const float* x,
                    int64_t first, int64_t count, float* to) {
  const int64_t plane = g.in_h * g.in_w * kLanes;
  for (int64_t c = 0; c < b.in; ++c) {
    for (int64_t t = 0; t < count; ++t) {
      const Tile tile = TileAt(g, first + t);
      TransformTile<kTile>(g, x + (tile.image * b.in + c) * plane, tile,
                           to + t * kLanes, b.tiles * kLanes);
    }
    to += g.Points() * b.tiles * kLanes;
  }
}

// The products of `count` tiles at all points: [point, tile, vector, lane].
template <int kVectors>
void Products(const WinogradGeometry& g, const Blocks& b, const float* pixels,
              int64_t count, const float* weights, float* to) {
  const int64_t parts = Quotient(count, kRows);
  const int64_t step = g.Points() * b.tiles * kLanes;
  for (int64_t point = 0; point < g.Points(); ++point) {
    for (int64_t p = 0, t = 0; p < parts; ++p) {
      const int64_t next = count * (p + 1) / parts;
      PanelProduct<kVectors>(
          next - t,
          {pixels + t * kLanes, step, b.in, weights, kVectors * kLanes,
           to + t * kVectors * kLanes, kVectors * kLanes, kLanes, false},
          {weights + kAhead, kVectors * kLanes * kLanes / kLineFloats});
      t = next;
    }
    pixels += b.tiles * kLanes;
    weights += b.in * kLanes * kVectors * kLanes;
    to += count * kVectors * kLanes;
  }
}

template <int kTile>
void InverseTile(const WinogradGeometry& g, const ConvArgs& args,
                 const float* from, int64_t point_step, V bias,
                 const Tile& tile, int64_t plane) {
  constexpr int kSize = kTile + 2;
  V points[kSize * kSize], lines[kTile * kSize], results[kTile * kTile];
  for (int i = 0; i < kSize * kSize; ++i)
    points[i] = Load(from + i * point_step);
  for (int j = 0; j < kSize; ++j)
    InverseLine<kTile>(points + j, kSize, lines + j, kSize);
  for (int i = 0; i < kTile; ++i)
    InverseLine<kTile>(lines + i * kSize, 1, results + i * kTile, 1);
  const V low = Number(args.low), high = Number(args.high);
  const int64_t rows = std::min<int64_t>(kTile, g.out_h - tile.top);
  const int64_t columns = std::min<int64_t>(kTile, g.out_w - tile.left);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = plane + ((tile.top + i) * g.out_w + tile.left) * kLanes;
    for (int64_t j = 0; j < columns; ++j) {
      V v = hn::Add(results[i * kTile + j], bias);
      if (args.residual != nullptr)
        v = hn::Add(v, Load(args.residual + at + j * kLanes));
      hn::StoreU(hn::Min(high, hn::Max(low, v)), kTag,
                 args.y + at + j * kLanes);
    }
  }
}

template <int kTile, int kVectors>
void Unit(const WinogradGeometry& g, const ConvArgs& args, const Blocks& b,
          const float* pixels, int64_t first, int64_t count, int64_t block,
          float* products) {
  const int64_t panel = g.Points() * b.in * kLanes * kLanes;
  Products<kVectors>(g, b, pixels, count, args.weights + block * panel,
                     products);
  for (int64_t v = 0; v < kVectors; ++v) {
    const int64_t channel = (block + v) * kLanes;
    const int64_t channels = std::min(g.out_channels - channel, kLanes);
    const auto there = hn::FirstN(kTag, static_cast<size_t>(channels));
    const V bias = args.bias != nullptr
                       ? hn::MaskedLoad(there, kTag, args.bias + channel)
                       : hn::Zero(kTag);
    for (int64_t t = 0; t < count; ++t) {
      const Tile tile = TileAt(g, first + t);
      InverseTile<kTile>(
          g, args, products + (t * kVectors + v) * kLanes,
          count * kVectors * kLanes, bias, tile,
          (tile.image * b.out + block + v) * g.out_h * g.out_w * kLanes);
    }
  }
}

template <int kTile>
void Units(const WinogradGeometry& g, const ConvArgs& args, const Part& part) {
  const Blocks b(g);
  float* products = part.memory + PixelFloats(g, b);
  int64_t transformed = -1;
  for (int64_t unit = part.begin; unit < part.end; ++unit) {
    const int64_t tiles = unit / b.wide, block = unit % b.wide * kWide;
    const int64_t first = g.Tiles() * tiles / b.count;
    const int64_t count = g.Tiles() * (tiles + 1) / b.count - first;
    if (tiles != transformed)
      TransformTiles<kTile>(g, b, args.x, first, count, part.memory);
    transformed = tiles;
    const auto run =
        block + kWide <= b.out ? Unit<kTile, kWide> : Unit<kTile, 1>;
    run(g, args, b, part.memory, first, count, block, products);
  }
}

void RunPart(const WinogradGeometry& g, const ConvArgs& args,
             const Part& part) {
  g.tile == 2 ? Units<2>(g, args, part) : Units<4>(g, args, part);
}

int64_t CountBlocks(const WinogradGeometry& g) { return Blocks(g).count; }

int64_t CountUnits(const WinogradGeometry& g) {
  const Blocks b(g);
  return b.count * b.wide;
}

// G g, of vectors that lie `step` apart.
template <int kTile>
HWY_INLINE void WeightLine(const V* g, int64_t step, V* to, int64_t to_step) {
  const auto set = [&](int64_t i, V v) HWY_ATTR { to[i * to_step] = v; };
  // Results for the points p and -p, whose divisors are the same.
  const auto pair = [&](int64_t i, double p, double divisor) HWY_ATTR {
    const V even = hn::MulAdd(Number(p * p / divisor), g[2 * step],
                              hn::Mul(Number(1 / divisor), g[0]));
    const V odd = hn::Mul(Number(p / divisor), g[step]);
    set(i, hn::Add(even, odd));
    set(i + 1, hn::Sub(even, odd));
  };
  if constexpr (kTile == 2) {
    set(0, hn::Neg(g[0]));
    pair(1, 1, 2);
  } else {
    constexpr double aa = kA4 * kA4, bb = kB4 * kB4;
    set(0, hn::Mul(Number(1 / (aa * bb)), g[0]));
    pair(1, kA4, 2 * aa * (aa - bb));
    pair(3, kB4, 2 * bb * (bb - aa));
  }
  set(kTile + 1, g[2 * step]);
}

// G w G' for a vector of output channels; w is [3, 3] matrices [in, out] apart.
template <int kTile>
HWY_INLINE void TransformWindow(const float* w, float* to, int64_t point_step) {
  constexpr int kSize = kTile + 2;
  V window[9], lines[3 * kSize], points[kSize];
  for (int i = 0; i < 9; ++i) window[i] = Load(w + i * kLanes * kLanes);
  for (int k = 0; k < 3; ++k) WeightLine<kTile>(window + k, 3, lines + k, 3);
  for (int i = 0; i < kSize; ++i) {
    WeightLine<kTile>(lines + 3 * i, 1, points, 1);
    for (int j = 0; j < kSize; ++j)
      hn::StoreU(points[j], kTag, to + (i * kSize + j) * point_step);
  }
}

// To [kWide vectors, point, in, vector, lane]; the last may have one vector.
void TransformWeights(const WinogradGeometry& g, const float* weights,
                      float* to) {
  const Blocks b(g);
  const int64_t panel = g.Points() * b.in * kLanes * kLanes;
  ParallelFor(b.out * b.in, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / b.in / kWide * kWide;
      const int64_t row = std::min(kWide, b.out - block) * kLanes;
      const float* from = weights + i * 9 * kLanes * kLanes;
      float* first = to + block * panel + i % b.in * kLanes * row +
                     (i / b.in - block) * kLanes;
      for (int64_t k = 0; k < kLanes; ++k) {
        if (g.tile == 2)
          TransformWindow<2>(from + k * kLanes, first + k * row,
                             b.in * kLanes * row);
        else
          TransformWindow<4>(from + k * kLanes, first + k * row,
                             b.in * kLanes * row);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(WeightFloats);
HWY_EXPORT(ScratchFloats);
HWY_EXPORT(CountBlocks);
HWY_EXPORT(CountUnits);
HWY_EXPORT(TransformWeights);
HWY_EXPORT(RunPart);

int64_t WinogradReads(const WinogradGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(CountBlocks)(g);
}

int64_t WinogradWeights(const WinogradGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(WeightFloats)(g);
}

int64_t WinogradScratch(const WinogradGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(ScratchFloats)(g) * Threads();
}

void WinogradTransform(const WinogradGeometry& g, const float* weights,
                       float* transformed) {
  HWY_DYNAMIC_DISPATCH(TransformWeights)(g, weights, transformed);
}

void Winograd(const WinogradGeometry& g, const ConvArgs& args) {
  const int64_t units = HWY_DYNAMIC_DISPATCH(CountUnits)(g);
  const int64_t floats = HWY_DYNAMIC_DISPATCH(ScratchFloats)(g);
  const auto run = HWY_DYNAMIC_DISPATCH(RunPart);
  ParallelParts([&](int64_t part, int64_t parts) {
    run(g, args,
        {units * part / parts, units * (part + 1) / parts,
         args.scratch + part * floats});
  });
}

}  // namespace cpu
}  // namespace pd
#endif
