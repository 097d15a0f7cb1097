// SPDX-License-Identifier: Apache-2.0
// int8_quantize, int8_dequantize and int8_elementwise. Images lie NHWC; one
// that comes row-major to be quantized is turned on the way.
#include <algorithm>
#include <memory>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/tiles.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kGrain = 8192;  // elements per thread at least

struct Map {
  const Tiles* tiles = &BestTiles();
  Int8In in;
  Int8Epilogue epilogue;
  bool adds = true;
  Tensor *x = nullptr, *y = nullptr, *out = nullptr;

  // Elements [begin, begin + count) of x, to `to`; y's from `y_begin` on.
  void Run(int64_t begin, int64_t y_begin, int64_t count, void* to) const {
    MapSpan m;
    m.x_floats = x->dtype() == DType::kFloat32;
    m.x = static_cast<const char*>(x->raw()) + begin * (m.x_floats ? 4 : 1);
    m.in = in;
    if (y != nullptr) m.y = y->data<uint8_t>() + y_begin;
    m.adds = adds;
    m.out = to;
    m.count = count;
    m.epilogue = &epilogue;
    tiles->map(m);
  }
  void RunAll() const {
    ParallelFor(x->size(), kGrain, [&](int64_t begin, int64_t end) {
      Run(begin, begin, end - begin, At(begin));
    });
  }
  // Pixel by pixel, where y has one number for each channel of an image.
  void RunPixels() const {
    const int64_t channels = x->dim(1), plane = x->dim(2) * x->dim(3);
    const int64_t grain = std::max<int64_t>(kGrain / channels, 1);
    ParallelFor(x->dim(0) * plane, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        Run(p * channels, p / plane * channels, channels, At(p * channels));
    });
  }
  void* At(int64_t i) const {
    return static_cast<char*>(out->raw()) +
           i * static_cast<int64_t>(SizeOf(out->dtype()));
  }
};

absl::StatusOr<Map> ReadMap(BindContext* context) {
  Map m;
  m.x = context->Input("X");
  m.out = context->Output("Out");
  m.in = ReadInt8In(context->op(), "x");
  PD_ASSIGN_OR_RETURN(m.epilogue, ReadInt8Epilogue(context->op()));
  if (m.x->dtype() != DType::kUInt8 && m.x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 and uint8");
  if (m.x->size() == 0) return Unimplemented("there is nothing to do");
  return m;
}

// A row-major image of floats to NHWC bytes, some pixels at a time.
void QuantizeTurned(const Map& m) {
  constexpr int64_t kPixels = 256, kRows = 3;
  const int64_t channels = m.x->dim(1), pixels = m.x->dim(2) * m.x->dim(3);
  const int64_t spans = (pixels + kPixels - 1) / kPixels;
  ParallelFor(m.x->dim(0) * spans, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / spans, first = i % spans * kPixels;
      const int64_t count = std::min(kPixels, pixels - first);
      uint8_t* to =
          m.out->data<uint8_t>() + (image * pixels + first) * channels;
      for (int64_t c = 0; c < channels; c += kRows) {
        uint8_t rows[kRows][kPixels];
        const uint8_t* const at[kRows] = {rows[0], rows[1], rows[2]};
        const int64_t n = std::min(kRows, channels - c);
        for (int64_t r = 0; r < n; ++r)
          m.Run((image * channels + c + r) * pixels + first, 0, count, rows[r]);
        if (channels == kRows) {
          m.tiles->turn_three(at, count, to);
          continue;
        }
        for (int64_t r = 0; r < n; ++r)
          for (int64_t p = 0; p < count; ++p)
            to[p * channels + c + r] = rows[r][p];
      }
    }
  });
}

}  // namespace

LayoutPtr ChannelsLast(const Shape& shape) {
  if (shape.size() != 4) return nullptr;
  return PermutedLayout(shape, {0, 2, 3, 1});
}

absl::StatusOr<Step> BindMap(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Map m, ReadMap(context));
  const LayoutPtr last = ChannelsLast(m.x->shape());
  const bool turns = last != nullptr && !SameLayout(last, nullptr) &&
                     m.x->layout() == nullptr &&
                     m.x->dtype() == DType::kFloat32 &&
                     m.out->dtype() == DType::kUInt8;
  if (!turns) {
    PD_ASSIGN_OR_RETURN(m.x, context->In(m.x, last));
  }
  PD_ASSIGN_OR_RETURN(m.out, context->Out(m.out, last));
  return Step([m, turns](const RunContext&) {
    turns ? QuantizeTurned(m) : m.RunAll();
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindElementwise(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Map m, ReadMap(context));
  m.y = context->Input("Y");
  const Shape &shape = m.x->shape(), &other = m.y->shape();
  const bool channels =
      shape.size() == 4 && other == Shape{shape[0], shape[1], 1, 1};
  if (m.x->dtype() != DType::kUInt8 || m.y->dtype() != DType::kUInt8 ||
      (shape != other && !channels))
    return Unimplemented(
        "it is for uint8 tensors of one shape, or one number a channel");
  m.adds = context->Attr<std::string>("operation") == "add";
  const bool pixels = shape != other;
  const LayoutPtr last = ChannelsLast(shape);
  PD_ASSIGN_OR_RETURN(m.y, context->In(m.y, ChannelsLast(other)));
  PD_ASSIGN_OR_RETURN(m.x, context->In(m.x, last));
  PD_ASSIGN_OR_RETURN(m.out, context->Out(m.out, last));
  if (m.out->dtype() == DType::kUInt8) {
    context->MayShare(m.x, m.out);
    if (!pixels) context->MayShare(m.y, m.out);
  }
  return Step([m, pixels](const RunContext&) {
    pixels ? m.RunPixels() : m.RunAll();
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
