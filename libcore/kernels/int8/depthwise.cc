// SPDX-License-Identifier: Apache-2.0
// int8_conv2d of one input channel for each output channel: one or two rows of
// the output at a time, for a block of channels.
#include <algorithm>
#include <memory>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/packed.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace int8 {
namespace {

struct Depthwise : Packed {
  ConvGeometry g;
  int64_t blocks = 0;
  size_t block_bytes = 0;  // of weights, for one row of the output
  int64_t rows = 1;        // of the output at a time
  std::vector<uint8_t> padding;
  size_t scratch_bytes = 0;  // of one thread
  Tensor *x = nullptr, *out = nullptr, *scratch = nullptr;
};

// The channel at place `i` of a block (tiles_images.inc, Interleave).
int64_t ChannelAt(const Tiles& tiles, int64_t i) {
  const int64_t lanes = tiles.depthwise_channels / 4;
  const int64_t vector = i / lanes, lane = i % lanes;
  return lane / 4 * 16 + 4 * vector + lane % 4;
}

void Pack(const Int8Weights& w, Depthwise* d) {
  const int64_t width = d->tiles->depthwise_channels;
  const WindowAxis &h = d->g.axes[0], &v = d->g.axes[1];
  d->block_bytes = static_cast<size_t>(RowGroups(h) * v.kernel * width * 4);
  const auto of_block = d->block_bytes * static_cast<size_t>(d->rows);
  d->weight_bytes = of_block * static_cast<size_t>(d->blocks);
  d->weights = ZeroedWeights(d->weight_bytes);
  for (int64_t b = 0; b < d->blocks; ++b)
    for (int64_t i = 0; i < width; ++i) {
      const int64_t channel = b * width + ChannelAt(*d->tiles, i);
      if (channel >= w.outputs) continue;
      int8_t* block = d->weights.get() + static_cast<size_t>(b) * of_block;
      for (int64_t r = 0; r < d->rows; ++r)
        for (int64_t tap = 0; tap < w.taps; ++tap) {
          const int64_t y = tap / v.kernel + r, x = tap % v.kernel;
          block[static_cast<size_t>(r) * d->block_bytes +
                static_cast<size_t>(((y / 4 * v.kernel + x) * width + i) * 4 +
                                    y % 4)] =
              w.values[static_cast<size_t>(channel * w.taps + tap)];
        }
    }
}

// Rows [y, y + rows) of an image, one block of channels.
void RunRows(const Depthwise& d, int64_t image, int64_t y, int64_t block,
             uint8_t* scratch) {
  const WindowAxis &h = d.g.axes[0], &w = d.g.axes[1];
  const int64_t channels = d.g.out_channels,
                width = d.tiles->depthwise_channels;
  const int64_t at = (image * h.out + y) * w.out * channels;
  const auto offset = [at](const Tensor& tensor) {
    return static_cast<char*>(tensor.raw()) +
           at * static_cast<int64_t>(SizeOf(tensor.dtype()));
  };
  DepthwiseRow row;
  row.in = d.x->data<uint8_t>() + image * h.in * w.in * channels;
  row.end = d.x->data<uint8_t>() + d.x->size();
  row.channels = channels;
  row.channel = block * width;
  row.row = y;
  row.count = static_cast<int>(std::min(d.rows, h.out - y));
  row.h = &h;
  row.w = &w;
  row.padding = d.padding.data();
  row.zero = static_cast<uint8_t>(d.zero);
  row.kind = d.kind;
  row.scratch = scratch;
  row.finish = &d.finish;
  row.out = offset(*d.out);
  if (d.floats != nullptr) row.floats = d.floats->data<float>() + at;
  if (d.residual != nullptr) {
    row.residual = offset(*d.residual);
    row.residual_floats = d.residual->dtype() == DType::kFloat32;
  }
  const auto place = static_cast<size_t>(block * width);
  row.weight_bytes = static_cast<int64_t>(d.block_bytes);
  row.weights =
      d.weights.get() + static_cast<size_t>(block * d.rows) * d.block_bytes;
  row.offsets = d.offsets.data() + place;
  row.scales = d.scales.data() + place;
  row.bias = d.bias.data() + place;
  d.tiles->depthwise(row);
}

void RunPart(const Depthwise& d, int64_t part, int64_t parts,
             uint8_t* scratch) {
  const int64_t height = d.g.axes[0].out;
  const int64_t strips = (height + d.rows - 1) / d.rows;
  const int64_t work = d.g.batch * strips * d.blocks;
  for (int64_t i = work * part / parts; i < work * (part + 1) / parts; ++i) {
    const int64_t strip = i / d.blocks;
    RunRows(d, strip / strips, strip % strips * d.rows, i % d.blocks, scratch);
  }
}

}  // namespace

absl::StatusOr<Step> BindDepthwise(BindContext* context) {
  auto d = std::make_shared<Depthwise>();
  d->x = context->Input("Input");
  if (d->x->dtype() != DType::kUInt8) return Unimplemented("it is for uint8");
  PD_ASSIGN_OR_RETURN(d->g, ReadConv(context->op(), d->x->shape(),
                                     context->Input("Filter")->shape()));
  if (d->g.groups != d->g.in_channels || d->g.groups != d->g.out_channels ||
      d->g.groups < 8)
    return Unimplemented("%d groups of %d channels are not depthwise",
                         d->g.groups, d->g.in_channels);
  if (d->x->size() == 0 || NumElements(d->g.OutputShape()) == 0)
    return Unimplemented("there is nothing to do");
  d->tiles = &BestTiles();
  const int64_t width = d->tiles->depthwise_channels;
  d->blocks = (d->g.groups + width - 1) / width;
  d->rows = TakesTwo(d->g.axes[0]) ? 2 : 1;
  PD_ASSIGN_OR_RETURN(const Int8Weights w, ReadInt8Weights(context));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < d->blocks * width; ++i) {
    const int64_t channel = i / width * width + ChannelAt(*d->tiles, i % width);
    order.push_back(channel < w.outputs ? channel : -1);
  }
  PD_RETURN_IF_ERROR(FillChannels(context, w, order, d.get()));
  Pack(w, d.get());
  d->kind = d->tiles->vnni ? DotKind::kQuads
            : NoPairSaturates(d->weights.get(), d->weight_bytes / 2,
                              ReadInt8In(context->op(), "x").high)
                ? DotKind::kPairs
                : DotKind::kExact;
  ShareWeights(d->weight_bytes, &d->weights);
  PD_ASSIGN_OR_RETURN(d->x, context->In(d->x, ChannelsLast(d->x->shape())));
  d->out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(d->out,
                      context->Out(d->out, ChannelsLast(d->out->shape())));
  PD_ASSIGN_OR_RETURN(d->residual, BindResidual(context, d->x, d->out));
  PD_ASSIGN_OR_RETURN(d->floats, BindFloats(context, *d->out));
  PrepareFinish(w, d.get());
  d->padding.assign(static_cast<size_t>(width), static_cast<uint8_t>(d->zero));
  const WindowAxis& v = d->g.axes[1];
  const int64_t columns =
      (v.out - 1) * v.stride + (v.kernel - 1) * v.dilation + 1;
  d->scratch_bytes =
      static_cast<size_t>(RowGroups(d->g.axes[0]) * columns * width * 4);
  const int threads = Threads();
  d->scratch =
      context->Scratch(d->scratch_bytes * static_cast<size_t>(threads));
  return Step([d, threads](const RunContext&) {
    ParallelParts([&](int part, int parts) {
      PD_INVARIANT(parts <= threads);
      RunPart(*d, part, parts,
              d->scratch->data<uint8_t>() +
                  static_cast<size_t>(part) * d->scratch_bytes);
    });
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
