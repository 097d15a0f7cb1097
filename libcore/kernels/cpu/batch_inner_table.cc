// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <map>
#include <utility>

#include "libcore/kernels/cpu/batch_inner.h"

namespace pd {
namespace batch_inner {
namespace {

// The source positions and weights along one axis that make one position.
using AxisTaps = std::vector<std::pair<int64_t, int64_t>>;  // (source, weight)

struct Axis {
  std::vector<int32_t> classes;    // per position
  std::vector<int64_t> base;       // per position, the first source position
  std::vector<AxisTaps> patterns;  // per class, relative to the base
};

Axis Classify(const std::vector<AxisTaps>& positions) {
  Axis axis;
  std::map<AxisTaps, int32_t> known;
  for (AxisTaps taps : positions) {
    const int64_t base = taps.empty() ? 0 : taps.front().first;
    for (auto& tap : taps) tap.first -= base;
    const auto [it, added] =
        known.emplace(taps, static_cast<int32_t>(axis.patterns.size()));
    if (added) axis.patterns.push_back(taps);
    axis.classes.push_back(it->second);
    axis.base.push_back(base);
  }
  return axis;
}

// y[o] reads x[o * stride - pad + k * dilation].
std::vector<AxisTaps> ForwardTaps(int64_t out, int64_t in, int64_t kernel,
                                  int64_t stride, int64_t pad,
                                  int64_t dilation) {
  std::vector<AxisTaps> positions(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t i = o * stride - pad + k * dilation;
      if (i >= 0 && i < in) positions[static_cast<size_t>(o)].push_back({i, k});
    }
  return positions;
}

// The other way round: dx[i] reads those dy[o].
std::vector<AxisTaps> Transposed(const std::vector<AxisTaps>& forward,
                                 int64_t in) {
  std::vector<AxisTaps> positions(static_cast<size_t>(in));
  for (size_t o = 0; o < forward.size(); ++o)
    for (const auto& [i, k] : forward[o])
      positions[static_cast<size_t>(i)].push_back({static_cast<int64_t>(o), k});
  return positions;
}

GatherTable MakeTable(const Geometry& g, const std::vector<AxisTaps>& rows,
                      const std::vector<AxisTaps>& columns,
                      int64_t source_width) {
  GatherTable table;
  table.height = static_cast<int64_t>(rows.size());
  table.width = static_cast<int64_t>(columns.size());
  const Axis h = Classify(rows), w = Classify(columns);
  table.row_class = h.classes;
  table.column_class = w.classes;
  for (int64_t b : h.base) table.row_base.push_back(b * source_width * g.batch);
  for (int64_t b : w.base) table.column_base.push_back(b * g.batch);
  table.column_classes = static_cast<int32_t>(w.patterns.size());
  for (const AxisTaps& row : h.patterns)
    for (const AxisTaps& column : w.patterns) {
      table.first.push_back(static_cast<int32_t>(table.taps.size()));
      for (const auto& [r, kh] : row)
        for (const auto& [c, kw] : column)
          table.taps.push_back(
              {static_cast<int32_t>((r * source_width + c) * g.batch),
               static_cast<int32_t>(kh * g.kernel_w + kw)});
    }
  table.first.push_back(static_cast<int32_t>(table.taps.size()));
  return table;
}

}  // namespace

GatherTable ForwardTable(const Geometry& g) {
  return MakeTable(g,
                   ForwardTaps(g.out_h, g.in_h, g.kernel_h, g.stride_h,
                               g.pad_top, g.dilation_h),
                   ForwardTaps(g.out_w, g.in_w, g.kernel_w, g.stride_w,
                               g.pad_left, g.dilation_w),
                   g.in_w);
}

GatherTable BackwardDataTable(const Geometry& g) {
  return MakeTable(g,
                   Transposed(ForwardTaps(g.out_h, g.in_h, g.kernel_h,
                                          g.stride_h, g.pad_top, g.dilation_h),
                              g.in_h),
                   Transposed(ForwardTaps(g.out_w, g.in_w, g.kernel_w,
                                          g.stride_w, g.pad_left, g.dilation_w),
                              g.in_w),
                   g.out_w);
}

GatherArgs ForwardArgs(const Geometry& g, const GatherTable& table) {
  GatherArgs args;
  args.table = &table;
  args.batch = g.batch;
  args.channels = g.in_channels;
  args.outputs = g.out_channels;
  args.source_channel_stride = g.in_h * g.in_w * g.batch;
  args.weight_channel_stride = g.kernel_h * g.kernel_w;
  args.weight_output_stride = g.in_channels * g.kernel_h * g.kernel_w;
  return args;
}

GatherArgs BackwardDataArgs(const Geometry& g, const GatherTable& table) {
  GatherArgs args;
  args.table = &table;
  args.batch = g.batch;
  args.channels = g.out_channels;
  args.outputs = g.in_channels;
  args.source_channel_stride = g.out_h * g.out_w * g.batch;
  args.weight_channel_stride = g.in_channels * g.kernel_h * g.kernel_w;
  args.weight_output_stride = g.kernel_h * g.kernel_w;
  return args;
}

}  // namespace batch_inner
}  // namespace pd
