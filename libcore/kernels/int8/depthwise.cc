// SPDX-License-Identifier: Apache-2.0
// int8_conv2d of one input channel for each output channel, row by row of the
// output for a block of channels at a time.
#include <memory>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/packed.h"
#include "libcore/ops/window.h"

namespace pd {
namespace int8 {
namespace {

struct Depthwise : Packed {
  ConvGeometry g;
  int64_t blocks = 0;
  size_t block_bytes = 0;    // of weights
  size_t scratch_bytes = 0;  // of one thread
  Tensor *x = nullptr, *residual = nullptr, *out = nullptr, *scratch = nullptr;
  Tensor* floats = nullptr;
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
  d->weight_bytes = d->block_bytes * static_cast<size_t>(d->blocks);
  d->weights = ZeroedWeights(d->weight_bytes);
  for (int64_t b = 0; b < d->blocks; ++b)
    for (int64_t i = 0; i < width; ++i) {
      const int64_t channel = b * width + ChannelAt(*d->tiles, i);
      if (channel >= w.outputs) continue;
      int8_t* block =
          d->weights.get() + static_cast<size_t>(b) * d->block_bytes;
      for (int64_t tap = 0; tap < w.taps; ++tap) {
        const int64_t y = tap / v.kernel, x = tap % v.kernel;
        block[((y / 4 * v.kernel + x) * width + i) * 4 + y % 4] =
            w.values[static_cast<size_t>(channel * w.taps + tap)];
      }
    }
}

void RunRow(const Depthwise& d, int64_t image, int64_t y, uint8_t* scratch) {
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
  row.row = y;
  row.h = &h;
  row.w = &w;
  row.zero = static_cast<uint8_t>(d.zero);
  row.kind = d.kind;
  row.scratch = scratch;
  row.epilogue = &d.epilogue;
  row.out = offset(*d.out);
  if (d.floats != nullptr) row.floats = d.floats->data<float>() + at;
  if (d.residual != nullptr) {
    row.residual = offset(*d.residual);
    row.residual_floats = d.residual->dtype() == DType::kFloat32;
  }
  for (int64_t b = 0; b < d.blocks; ++b) {
    const auto place = static_cast<size_t>(b * width);
    row.channel = b * width;
    row.weights = d.weights.get() + static_cast<size_t>(b) * d.block_bytes;
    row.offsets = d.offsets.data() + place;
    row.scales = d.scales.data() + place;
    row.bias = d.bias.data() + place;
    d.tiles->depthwise(row);
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
  PD_ASSIGN_OR_RETURN(d->x, context->In(d->x, ChannelsLast(d->x->shape())));
  d->out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(d->out,
                      context->Out(d->out, ChannelsLast(d->out->shape())));
  PD_ASSIGN_OR_RETURN(d->residual, BindResidual(context, d->x, d->out));
  PD_ASSIGN_OR_RETURN(d->floats, BindFloats(context, *d->out));
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
      const int64_t height = d->g.axes[0].out, rows = d->g.batch * height;
      for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i)
        RunRow(*d, i / height, i % height,
               d->scratch->data<uint8_t>() +
                   static_cast<size_t>(part) * d->scratch_bytes);
    });
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
