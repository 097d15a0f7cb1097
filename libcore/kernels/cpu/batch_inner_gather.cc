// SPDX-License-Identifier: Apache-2.0
// Forward convolution and the gradient of its data: register tiles of a few
// outputs by a few vectors of samples, weights broadcast. With a small batch
// the vectors of a tile are neighbouring pixels.
#include <algorithm>
#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/batch_inner.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/batch_inner_gather.cc"
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

constexpr int kMaxOutputs = 6;
// 6 x 4 accumulators of 32 registers, or 6 x 2 of 16.
constexpr int kMaxPoints = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

struct Tile {
  const GatherArgs* args;
  const Tap *taps, *taps_end;
  const float* source;
  float* destination;
  int64_t first_output;
  int64_t source_point_stride, destination_point_stride;
  size_t lanes;  // samples in the last vector
};

template <int kOutputs, int kPoints, bool kPartial>
HWY_NOINLINE void RunTile(const Tile& t) {
  const GatherArgs& a = *t.args;
  V sum[kOutputs][kPoints];
  for (int o = 0; o < kOutputs; ++o) {
    const V start = a.bias != nullptr
                        ? hn::Set(kTag, a.bias[t.first_output + o])
                        : hn::Zero(kTag);
    for (int p = 0; p < kPoints; ++p) sum[o][p] = start;
  }
  const auto mask = hn::FirstN(kTag, t.lanes);
  const int64_t step = t.source_point_stride;
  const int64_t weight_step = a.weight_output_stride;
  const float* source = t.source;
  const float* weight = a.weight + t.first_output * weight_step;
  for (int64_t c = 0; c < a.channels; ++c) {
    for (const Tap* tap = t.taps; tap != t.taps_end; ++tap) {
      const float* x = source + tap->source;
      const float* w = weight + tap->weight;
      V value[kPoints];
      for (int p = 0; p < kPoints; ++p)
        value[p] = kPartial ? hn::MaskedLoad(mask, kTag, x + p * step)
                            : hn::LoadU(kTag, x + p * step);
      for (int o = 0; o < kOutputs; ++o) {
        const V factor = hn::Set(kTag, w[o * weight_step]);
        for (int p = 0; p < kPoints; ++p)
          sum[o][p] = hn::MulAdd(factor, value[p], sum[o][p]);
      }
    }
    source += a.source_channel_stride;
    weight += a.weight_channel_stride;
  }
  const int64_t plane = a.table->height * a.table->width * a.batch;
  float* out = t.destination + t.first_output * plane;
  for (int o = 0; o < kOutputs; ++o, out += plane)
    for (int p = 0; p < kPoints; ++p) {
      V value = sum[o][p];
      // NaN stays NaN.
      if (a.relu)
        value = hn::IfThenElse(hn::Lt(value, hn::Zero(kTag)), hn::Zero(kTag),
                               value);
      float* to = out + p * t.destination_point_stride;
      if (kPartial) {
        hn::BlendedStore(value, mask, kTag, to);
      } else {
        hn::StoreU(value, kTag, to);
      }
    }
}

using TileFn = void (*)(const Tile&);

template <int kPoints, bool kPartial, int... kOutputs>
TileFn SelectOutputs(int outputs, std::integer_sequence<int, kOutputs...>) {
  static constexpr TileFn kTable[] = {
      &RunTile<kOutputs + 1, kPoints, kPartial>...};
  return kTable[outputs - 1];
}

template <bool kPartial, int... kPoints>
TileFn Select(int outputs, int points, std::integer_sequence<int, kPoints...>) {
  TileFn found = nullptr;
  (void)((points == kPoints + 1
              ? (found = SelectOutputs<kPoints + 1, kPartial>(
                     outputs, std::make_integer_sequence<int, kMaxOutputs>()),
                 true)
              : false) ||
         ...);
  return found;
}

void RunOutputs(const GatherArgs& a, Tile* tile, int points, bool partial) {
  const int64_t blocks = (a.outputs + kMaxOutputs - 1) / kMaxOutputs;
  const auto all = std::make_integer_sequence<int, kMaxPoints>();
  for (int64_t b = 0; b < blocks; ++b) {
    tile->first_output = a.outputs * b / blocks;
    const int outputs =
        static_cast<int>(a.outputs * (b + 1) / blocks - tile->first_output);
    (partial ? Select<true>(outputs, points, all)
             : Select<false>(outputs, points, all))(*tile);
  }
}

// Vectors of samples that one tile takes from one pixel.
int64_t VectorsPerPixel(int64_t batch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  return batch >= kMaxPoints * lanes ? kMaxPoints : 1;
}

int64_t ItemCount(const GatherArgs& a) {
  const int64_t chunk =
      VectorsPerPixel(a.batch) * static_cast<int64_t>(hn::Lanes(kTag));
  return (a.batch + chunk - 1) / chunk * a.table->height;
}

// Neighbouring pixels from w on that one tile can take.
int PixelRun(const GatherTable& table, int64_t w) {
  int run = 1;
  while (run < kMaxPoints && w + run < table.width) {
    const size_t i = static_cast<size_t>(w), j = static_cast<size_t>(w + run);
    if (table.column_class[j] != table.column_class[i]) break;
    const int64_t step = table.column_base[i + 1] - table.column_base[i];
    if (table.column_base[j] != table.column_base[i] + run * step) break;
    ++run;
  }
  return run;
}

void RunRow(const GatherArgs& a, int64_t row, int64_t sample) {
  const GatherTable& table = *a.table;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const int64_t per_pixel = VectorsPerPixel(a.batch);
  const int64_t left = a.batch - sample;
  const int64_t full = std::min(per_pixel, left / lanes);
  const bool tail = full < per_pixel && left % lanes != 0;
  Tile tile;
  tile.args = &a;
  for (int64_t w = 0; w < table.width;) {
    const size_t column = static_cast<size_t>(w);
    const int run = per_pixel == 1 ? PixelRun(table, w) : 1;
    const size_t list = static_cast<size_t>(
        table.row_class[static_cast<size_t>(row)] * table.column_classes +
        table.column_class[column]);
    tile.taps = table.taps.data() + table.first[list];
    tile.taps_end = table.taps.data() + table.first[list + 1];
    tile.source = a.source + table.row_base[static_cast<size_t>(row)] +
                  table.column_base[column] + sample;
    tile.destination =
        a.destination + (row * table.width + w) * a.batch + sample;
    tile.source_point_stride = lanes;
    tile.destination_point_stride = lanes;
    if (run > 1) {
      tile.source_point_stride =
          table.column_base[column + 1] - table.column_base[column];
      tile.destination_point_stride = a.batch;
    }
    if (full > 0)
      RunOutputs(a, &tile, run > 1 ? run : static_cast<int>(full), false);
    if (tail) {
      tile.lanes = static_cast<size_t>(left % lanes);
      tile.source += full * lanes;
      tile.destination += full * lanes;
      RunOutputs(a, &tile, run, true);
    }
    w += run;
  }
}

void RunItems(const GatherArgs& a, int64_t begin, int64_t end) {
  const int64_t chunk =
      VectorsPerPixel(a.batch) * static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t i = begin; i < end; ++i)
    RunRow(a, i % a.table->height, i / a.table->height * chunk);
}

}  // namespace HWY_NAMESPACE
}  // namespace batch_inner
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace batch_inner {

HWY_EXPORT(ItemCount);
HWY_EXPORT(RunItems);

void Gather(const GatherArgs& args) {
  const auto run = HWY_DYNAMIC_DISPATCH(RunItems);
  ParallelFor(HWY_DYNAMIC_DISPATCH(ItemCount)(args), 1,
              [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

}  // namespace batch_inner
}  // namespace pd
#endif  // HWY_ONCE
