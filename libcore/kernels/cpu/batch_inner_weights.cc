// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights and the bias: each weight is a dot product over
// pixels and samples. Tiles of a few output channels by a few taps accumulate
// vectors of samples in registers over a block of pixels that fits the first
// level cache; between blocks the vectors live in memory, one set per thread,
// and lanes and threads are summed at the end.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/batch_inner.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/kernels/cpu/vector_floats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/batch_inner_weights.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace batch_inner {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<hn::ScalableTag<float>>;

constexpr bool kWide = HWY_TARGET <= HWY_AVX3;
constexpr int kMaxTaps = kWide ? 5 : 3;
constexpr int64_t kBlockBytes = 24 << 10;  // of dy; x and sums need room too

// Output channels of a tile with so many taps: 20 to 24 accumulators.
constexpr int ChannelsFor(int taps) { return kWide ? (taps == 5 ? 4 : 6) : 3; }

int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(kTag)); }

struct WeightTile {
  const float* dy;  // of the first channel, at the first pixel
  int64_t dy_channel_stride, dy_row_stride;
  const float* x;
  const int64_t* offsets;  // per tap
  int64_t x_row_stride, x_pixel_stride;
  int64_t rows, pixels, batch;
  float* sums;  // vectors
  int64_t sum_channel_stride;
};

// Adds the products of one vector of samples; kPartial: of its first lanes.
template <int kChannels, int kTaps, bool kPartial, class M>
HWY_INLINE void Accumulate(const float* dy, int64_t dy_channel_stride,
                           const float* const (&x)[kTaps], int64_t at, M mask,
                           V (&sum)[kChannels][kTaps]) {
  V value[kTaps];
  for (int k = 0; k < kTaps; ++k)
    value[k] = kPartial ? hn::MaskedLoad(mask, kTag, x[k] + at)
                        : hn::LoadU(kTag, x[k] + at);
  for (int c = 0; c < kChannels; ++c) {
    const float* from = dy + c * dy_channel_stride;
    const V g =
        kPartial ? hn::MaskedLoad(mask, kTag, from) : hn::LoadU(kTag, from);
    for (int k = 0; k < kTaps; ++k)
      sum[c][k] = hn::MulAdd(g, value[k], sum[c][k]);
  }
}

template <int kChannels, int kTaps>
HWY_NOINLINE void RunTile(const WeightTile& t) {
  const int64_t lanes = Lanes();
  const int64_t full = t.batch / lanes * lanes;
  const auto mask = hn::FirstN(kTag, static_cast<size_t>(t.batch - full));
  V sum[kChannels][kTaps];
  for (int c = 0; c < kChannels; ++c)
    for (int k = 0; k < kTaps; ++k)
      sum[c][k] = hn::Load(kTag, t.sums + c * t.sum_channel_stride + k * lanes);
  // Two passes, so that the sums stay in registers in the inner loop.
  for (int64_t i = 0; i < t.rows * t.pixels; ++i) {
    const int64_t r = t.pixels == 1 ? i : i / t.pixels;
    const int64_t p = i - r * t.pixels;
    const float* dy = t.dy + r * t.dy_row_stride + p * t.batch;
    const float* x[kTaps];
    for (int k = 0; k < kTaps; ++k)
      x[k] = t.x + r * t.x_row_stride + p * t.x_pixel_stride + t.offsets[k];
    for (int64_t at = 0; at < full; at += lanes)
      Accumulate<kChannels, kTaps, false>(dy + at, t.dy_channel_stride, x, at,
                                          mask, sum);
  }
  if (full < t.batch) {
    for (int64_t i = 0; i < t.rows * t.pixels; ++i) {
      const int64_t r = i / t.pixels, p = i % t.pixels;
      const float* x[kTaps];
      for (int k = 0; k < kTaps; ++k)
        x[k] = t.x + r * t.x_row_stride + p * t.x_pixel_stride + t.offsets[k];
      Accumulate<kChannels, kTaps, true>(
          t.dy + r * t.dy_row_stride + p * t.batch + full, t.dy_channel_stride,
          x, full, mask, sum);
    }
  }
  for (int c = 0; c < kChannels; ++c)
    for (int k = 0; k < kTaps; ++k)
      hn::Store(sum[c][k], kTag, t.sums + c * t.sum_channel_stride + k * lanes);
}

using TileFn = void (*)(const WeightTile&);

template <int kTaps, int... kChannels>
TileFn SelectChannels(int channels, std::integer_sequence<int, kChannels...>) {
  static constexpr TileFn kTable[] = {&RunTile<kChannels + 1, kTaps>...};
  return kTable[channels - 1];
}

template <int... kTaps>
TileFn Select(int channels, int taps, std::integer_sequence<int, kTaps...>) {
  TileFn found = nullptr;
  // A part of a group of 5 taps has few channels, so all have at least 4.
  (void)((taps == kTaps + 1
              ? (found = SelectChannels<kTaps + 1>(
                     channels,
                     std::make_integer_sequence<int, ChannelsFor(kTaps + 1)>()),
                 true)
              : false) ||
         ...);
  return found;
}

// The columns whose tap at `kw` is inside the input.
std::pair<int64_t, int64_t> InsideColumns(const Geometry& g, int64_t kw) {
  const int64_t at = kw * g.dilation_w - g.pad_left;
  const int64_t begin = at >= 0 ? 0 : (-at + g.stride_w - 1) / g.stride_w;
  const int64_t end = g.in_w <= at ? 0 : (g.in_w - at - 1) / g.stride_w + 1;
  return {std::min(begin, g.out_w), std::min(end, g.out_w)};
}

// Cuts the columns where the set of taps that are inside changes. The taps
// inside at a column are neighbours, because offsets grow with the tap.
std::vector<Segment> Segments(const Geometry& g, int64_t first_kw, int taps) {
  std::vector<Segment> segments;
  for (int64_t w = 0; w < g.out_w; ++w) {
    Segment s;
    s.begin = w;
    s.end = w + 1;
    for (int k = 0; k < taps; ++k) {
      const auto [begin, end] = InsideColumns(g, first_kw + k);
      if (w < begin || w >= end) continue;
      if (s.taps == 0) s.first_tap = k;
      s.taps = k - s.first_tap + 1;
    }
    if (s.taps == 0) continue;
    if (!segments.empty() && segments.back().end == w &&
        segments.back().first_tap == s.first_tap &&
        segments.back().taps == s.taps) {
      segments.back().end = w + 1;
    } else {
      segments.push_back(s);
    }
  }
  return segments;
}

TapGroup MakeGroup(const Geometry& g, int64_t channel, int64_t kh,
                   int64_t first, int64_t taps, bool across) {
  TapGroup group;
  group.taps = static_cast<int>(taps);
  const int64_t plane = g.in_h * g.in_w * g.batch;
  const int64_t row = kh * g.dilation_h - g.pad_top;
  group.row_end = g.out_h;
  while (group.row_begin < g.out_h && group.row_begin * g.stride_h + row < 0)
    ++group.row_begin;
  while (group.row_end > group.row_begin &&
         (group.row_end - 1) * g.stride_h + row >= g.in_h)
    --group.row_end;
  for (int64_t k = 0; k < taps; ++k) {
    const int64_t kw = across ? 0 : first + k;
    const int64_t c = across ? first + k : channel;
    group.offsets.push_back(
        c * plane + (row * g.in_w + kw * g.dilation_w - g.pad_left) * g.batch);
  }
  if (across) {
    const auto [begin, end] = InsideColumns(g, 0);
    if (begin < end) group.segments.push_back({begin, end, 0, group.taps});
  } else {
    group.segments = Segments(g, first, group.taps);
  }
  return group;
}

void MakePlan(WeightGradPlan* plan) {
  const Geometry& g = plan->geometry;
  const bool across = g.kernel_h * g.kernel_w == 1;
  const int64_t row = across ? g.in_channels : g.kernel_w;
  const int64_t pieces = (row + kMaxTaps - 1) / kMaxTaps;
  const int64_t lines = across ? 1 : g.in_channels * g.kernel_h;
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t first = row * p / pieces;
      plan->groups.push_back(MakeGroup(g, line / g.kernel_h, line % g.kernel_h,
                                       first, row * (p + 1) / pieces - first,
                                       across));
    }
  plan->channel_block =
      ChannelsFor(static_cast<int>((row + pieces - 1) / pieces));
  const int64_t blocks =
      (g.out_channels + plan->channel_block - 1) / plan->channel_block;
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t p = 0; p < pieces; ++p)
        for (int64_t c = g.out_channels * b / blocks;
             c < g.out_channels * (b + 1) / blocks; ++c)
          for (int64_t k = row * p / pieces; k < row * (p + 1) / pieces; ++k)
            plan->place.push_back(
                static_cast<int32_t>((c * lines + line) * row + k));
  const int64_t pixel =
      plan->channel_block * g.batch * static_cast<int64_t>(sizeof(float));
  const int64_t pixels = std::max<int64_t>(1, kBlockBytes / pixel);
  const int64_t column_blocks = (g.out_w + pixels - 1) / pixels;
  plan->block_columns = (g.out_w + column_blocks - 1) / column_blocks;
  plan->block_rows = std::max<int64_t>(1, pixels / g.out_w);
  plan->parts = static_cast<int>(std::min<int64_t>(plan->parts, g.out_h));
  plan->block_rows =
      std::min(plan->block_rows, (g.out_h + plan->parts - 1) / plan->parts);
  plan->sum_floats =
      (static_cast<int64_t>(plan->place.size()) + g.out_channels) * Lanes();
  plan->block_floats =
      (g.out_channels * plan->block_rows * plan->block_columns * g.batch + 15) /
      16 * 16;
}

// The gradient that one block works on, after the ReLU.
struct Block {
  int64_t row, rows, column, columns;
  const float* dy;
  int64_t channel_stride, row_stride;
};

void Mask(const float* dy, const float* y, int64_t n, float* out) {
  const int64_t lanes = Lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(
        hn::IfThenElseZero(hn::Gt(hn::LoadU(kTag, y + i), hn::Zero(kTag)),
                           hn::LoadU(kTag, dy + i)),
        kTag, out + i);
  for (; i < n; ++i) out[i] = y[i] > 0 ? dy[i] : 0.0f;
}

void AddRow(const float* dy, int64_t n, float* sums) {
  const int64_t lanes = Lanes();
  V s0 = hn::Load(kTag, sums), s1 = hn::Zero(kTag);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(kTag, dy + i));
    s1 = hn::Add(s1, hn::LoadU(kTag, dy + i + lanes));
  }
  for (; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    s1 = hn::Add(s1, hn::MaskedLoad(mask, kTag, dy + i));
  }
  hn::Store(hn::Add(s0, s1), kTag, sums);
}

// Cuts the gradient of a block where the ReLU was off.
void CutBlock(const WeightGradArgs& a, float* buffer, Block* b) {
  const Geometry& g = a.plan->geometry;
  const int64_t width = b->columns * g.batch;
  const int64_t from = b->dy - a.dy;
  float* out = a.masked != nullptr ? a.masked + from : buffer;
  const int64_t row_stride = a.masked != nullptr ? b->row_stride : width;
  const int64_t channel_stride =
      a.masked != nullptr ? b->channel_stride : width * b->rows;
  for (int64_t c = 0; c < g.out_channels; ++c)
    for (int64_t r = 0; r < b->rows; ++r) {
      const int64_t at = c * b->channel_stride + r * b->row_stride;
      Mask(b->dy + at, a.activated + from + at, width,
           out + c * channel_stride + r * row_stride);
    }
  b->dy = out;
  b->row_stride = row_stride;
  b->channel_stride = channel_stride;
}

void RunGroup(const WeightGradArgs& a, const Block& b, const TapGroup& group,
              int64_t channel, int channels, float* sums) {
  const Geometry& g = a.plan->geometry;
  const int64_t first_row = std::max(b.row, group.row_begin);
  WeightTile tile;
  tile.rows = std::min(b.row + b.rows, group.row_end) - first_row;
  if (tile.rows <= 0) return;
  tile.dy_channel_stride = b.channel_stride;
  tile.dy_row_stride = b.row_stride;
  tile.x_pixel_stride = g.stride_w * g.batch;
  tile.x_row_stride = g.stride_h * g.in_w * g.batch;
  tile.sum_channel_stride = group.taps * Lanes();
  for (const Segment& s : group.segments) {
    const int64_t begin = std::max(s.begin, b.column);
    tile.pixels = std::min(s.end, b.column + b.columns) - begin;
    if (tile.pixels <= 0) continue;
    tile.dy = b.dy + channel * b.channel_stride +
              (first_row - b.row) * b.row_stride + (begin - b.column) * g.batch;
    tile.x = a.x + first_row * tile.x_row_stride + begin * tile.x_pixel_stride;
    tile.offsets = group.offsets.data() + s.first_tap;
    tile.sums = sums + s.first_tap * Lanes();
    tile.batch = g.batch;
    if (g.stride_w == 1) {  // a row of pixels is one run of samples
      tile.batch *= tile.pixels;
      tile.pixels = 1;
    }
    Select(channels, s.taps, std::make_integer_sequence<int, kMaxTaps>())(tile);
  }
}

void RunBlock(const WeightGradArgs& a, float* sums, float* buffer, Block b) {
  const WeightGradPlan& plan = *a.plan;
  const Geometry& g = plan.geometry;
  const int64_t lanes = Lanes();
  b.row_stride = g.out_w * g.batch;
  b.channel_stride = g.out_h * b.row_stride;
  b.dy = a.dy + b.row * b.row_stride + b.column * g.batch;
  if (a.activated != nullptr) CutBlock(a, buffer, &b);
  if (a.dbias != nullptr) {
    float* bias = sums + static_cast<int64_t>(plan.place.size()) * lanes;
    for (int64_t c = 0; c < g.out_channels; ++c)
      for (int64_t r = 0; r < b.rows; ++r)
        AddRow(b.dy + c * b.channel_stride + r * b.row_stride,
               b.columns * g.batch, bias + c * lanes);
  }
  const int64_t blocks =
      (g.out_channels + plan.channel_block - 1) / plan.channel_block;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = g.out_channels * i / blocks;
    const int64_t count = g.out_channels * (i + 1) / blocks - first;
    for (const TapGroup& group : plan.groups) {
      RunGroup(a, b, group, first, static_cast<int>(count), sums);
      sums += count * group.taps * lanes;
    }
  }
}

// The rows [begin, end) of one thread.
void RunRows(const WeightGradArgs& args, float* sums, float* buffer,
             int64_t begin, int64_t end) {
  const WeightGradPlan& plan = *args.plan;
  const int64_t width = plan.geometry.out_w;
  for (int64_t h = begin; h < end; h += plan.block_rows)
    for (int64_t w = 0; w < width; w += plan.block_columns) {
      Block block{};
      block.row = h;
      block.rows = std::min(plan.block_rows, end - h);
      block.column = w;
      block.columns = std::min(plan.block_columns, width - w);
      RunBlock(args, sums, buffer, block);
    }
}

// Sums lanes and threads of the vectors [begin, end).
void Reduce(const WeightGradArgs& args, int64_t begin, int64_t end) {
  const WeightGradPlan& plan = *args.plan;
  const int64_t weights = static_cast<int64_t>(plan.place.size());
  for (int64_t i = begin; i < end; ++i) {
    const float* sums = args.scratch + i * Lanes();
    V total = hn::Load(kTag, sums);
    for (int p = 1; p < plan.parts; ++p)
      total = hn::Add(total, hn::Load(kTag, sums + p * plan.sum_floats));
    const float sum = hn::GetLane(hn::SumOfLanes(kTag, total));
    if (i < weights) {
      args.dweight[plan.place[static_cast<size_t>(i)]] = sum;
    } else if (args.dbias != nullptr) {
      args.dbias[i - weights] = sum;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace batch_inner
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace batch_inner {

HWY_EXPORT(MakePlan);
HWY_EXPORT(RunRows);
HWY_EXPORT(Reduce);
HWY_EXPORT(Lanes);

WeightGradPlan PlanWeightGrad(const Geometry& g, int threads) {
  WeightGradPlan plan;
  plan.geometry = g;
  plan.parts = threads;
  HWY_DYNAMIC_DISPATCH(MakePlan)(&plan);
  return plan;
}

void WeightGrad(const WeightGradArgs& args) {
  const WeightGradPlan& plan = *args.plan;
  const int64_t parts = plan.parts, rows = plan.geometry.out_h;
  const auto run = HWY_DYNAMIC_DISPATCH(RunRows);
  const auto reduce = HWY_DYNAMIC_DISPATCH(Reduce);
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      float* sums = args.scratch + p * plan.sum_floats;
      float* buffer =
          args.scratch + parts * plan.sum_floats + p * plan.block_floats;
      std::memset(sums, 0,
                  static_cast<size_t>(plan.sum_floats) * sizeof(float));
      run(args, sums, buffer, rows * p / parts, rows * (p + 1) / parts);
    }
  });
  const int64_t sums =
      static_cast<int64_t>(plan.place.size()) + plan.geometry.out_channels;
  ParallelFor(sums, 512,
              [&](int64_t begin, int64_t end) { reduce(args, begin, end); });
}

static int64_t VectorFloats() { return HWY_DYNAMIC_DISPATCH(Lanes)(); }

}  // namespace batch_inner

int64_t cpu::VectorFloats() { return batch_inner::VectorFloats(); }

}  // namespace pd
#endif  // HWY_ONCE
