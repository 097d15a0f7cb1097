// SPDX-License-Identifier: Apache-2.0
// int8_pool2d of images that lie NHWC, and pool2d of floats that do: the last
// product of a chain leaves them so. A window of some channels at a time.
#include <algorithm>
#include <string>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"
#include "libcore/ops/quantize/int8.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kChannels = 256;  // at a time

struct Pool {
  PoolGeometry g;
  Int8In in;
  Int8Epilogue epilogue;
  Tensor *x = nullptr, *out = nullptr;
};

// Channels [first, first + count) of one window.
struct Window {
  const Pool& p;
  PoolWindow rows, columns;
  int64_t first, count;
  int64_t from, to;  // offsets of the image and of the pixel of the output

  template <typename T, typename Body>
  void ForPixels(const Body& body) const {
    const T* image = p.x->data<T>() + from + first;
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j)
        body(image + (i * p.g.axes[1].in + j) * p.g.channels);
  }
  int64_t Inside() const {
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }
  float Count() const {
    const bool inside = p.g.exclusive || p.g.adaptive;
    return static_cast<float>(inside ? Inside() : rows.padded * columns.padded);
  }
};

void Greatest(const Window& w) {
  uint8_t* most = w.p.out->data<uint8_t>() + w.to;
  std::fill(most, most + w.count, uint8_t{0});
  w.ForPixels<uint8_t>([&](const uint8_t* pixel) {
    for (int64_t c = 0; c < w.count; ++c) most[c] = std::max(most[c], pixel[c]);
  });
}

void Average(const Window& w) {
  const Pool& p = w.p;
  int32_t sums[kChannels] = {};
  w.ForPixels<uint8_t>([&](const uint8_t* pixel) {
    for (int64_t c = 0; c < w.count; ++c) sums[c] += pixel[c];
  });
  const float count = w.Count();
  const int32_t zero = static_cast<int32_t>(w.Inside()) * p.in.zero;
  for (int64_t c = 0; c < w.count; ++c) {
    const float v =
        p.epilogue.act(static_cast<float>(sums[c] - zero) * p.in.scale / count);
    if (p.epilogue.out.quantized())
      p.out->data<uint8_t>()[w.to + c] = p.epilogue.out(v);
    else
      p.out->data<float>()[w.to + c] = v;
  }
}

void AverageFloats(const Window& w) {
  float* sums = w.p.out->data<float>() + w.to;
  std::fill(sums, sums + w.count, 0.0f);
  w.ForPixels<float>([&](const float* pixel) {
    for (int64_t c = 0; c < w.count; ++c) sums[c] += pixel[c];
  });
  const float count = w.Count();
  for (int64_t c = 0; c < w.count; ++c) sums[c] /= count;
}

// Calls body(window) of every window, some channels at a time.
template <typename Body>
void ForWindows(const Pool& p, const Body& body) {
  const WindowAxis &h = p.g.axes[0], &v = p.g.axes[1];
  const int64_t parts = (p.g.channels + kChannels - 1) / kChannels;
  ParallelFor(
      p.g.batch * h.out * v.out * parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t pixel = i / parts, first = i % parts * kChannels;
          const int64_t row = pixel / v.out;
          body(Window{p, WindowAt(h, p.g.adaptive, row % h.out),
                      WindowAt(v, p.g.adaptive, pixel % v.out), first,
                      std::min(kChannels, p.g.channels - first),
                      row / h.out * h.in * v.in * p.g.channels,
                      pixel * p.g.channels + first});
        }
      });
}

absl::StatusOr<Pool> ReadPoolOp(BindContext* context) {
  Pool p;
  p.x = context->Input("X");
  PD_ASSIGN_OR_RETURN(p.g, ReadPool(context->op(), p.x->shape()));
  if (p.g.axes.size() != 2 || p.g.channels_last)
    return Unimplemented("it is for NCHW");
  if (NumElements(p.g.OutputShape()) == 0)
    return Unimplemented("there is nothing to do");
  const LayoutPtr last = ChannelsLast(p.x->shape());
  PD_ASSIGN_OR_RETURN(p.x, context->In(p.x, last));
  PD_ASSIGN_OR_RETURN(p.out, context->Out(context->Output("Out"),
                                          ChannelsLast(p.g.OutputShape())));
  return p;
}

}  // namespace

absl::StatusOr<Step> BindPool(BindContext* context) {
  if (context->Input("X")->dtype() != DType::kUInt8)
    return Unimplemented("it is for uint8");
  PD_ASSIGN_OR_RETURN(Pool p, ReadPoolOp(context));
  PD_ASSIGN_OR_RETURN(p.epilogue, ReadInt8Epilogue(context->op()));
  p.in = ReadInt8In(context->op(), "x");
  return Step([p](const RunContext&) {
    ForWindows(p, [&](const Window& w) { p.g.max ? Greatest(w) : Average(w); });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindPoolFloats(BindContext* context) {
  const Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32 || context->IsTraining())
    return Unimplemented("it is for floats, where nothing is trained");
  const LayoutPtr last = ChannelsLast(x->shape());
  if (x->layout() == nullptr || !SameLayout(x->layout(), last))
    return Unimplemented("X does not lie with its channels last");
  if (context->Attr<std::string>("pooling_type") != "avg")
    return Unimplemented("it is for averages");
  PD_ASSIGN_OR_RETURN(const Pool p, ReadPoolOp(context));
  return Step([p](const RunContext&) {
    ForWindows(p, AverageFloats);
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
