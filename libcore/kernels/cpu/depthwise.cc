// SPDX-License-Identifier: Apache-2.0
// depthwise_conv2d_grad for windows of which oneDNN has no fast gradient by the
// weights: all but 3 by 3.
#include <algorithm>
#include <memory>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/depthwise_planes.h"
#include "libcore/kernels/cpu/vector_floats.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {
namespace {

absl::StatusOr<DepthwiseGeometry> ReadDepthwiseProblem(BindContext* context) {
  const Tensor* x = context->Input("Input");
  const Tensor* w = context->Input("Filter");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(const ConvGeometry c,
                      ReadConv(context->op(), x->shape(), w->shape()));
  if (c.axes.size() != 2 || c.channels_last)
    return Unimplemented("it is for images in NCHW");
  if (c.groups != c.in_channels || c.groups != c.out_channels)
    return Unimplemented("%d groups of %d channels are not depthwise", c.groups,
                         c.in_channels);
  const WindowAxis &h = c.axes[0], &v = c.axes[1];
  if (h.kernel == 3 && v.kernel == 3)
    return Unimplemented("oneDNN is faster for windows of 3 by 3");
  if (std::max(h.kernel, v.kernel) > kMaxDepthwiseKernel)
    return Unimplemented("a window of %d by %d is larger than %d", h.kernel,
                         v.kernel, kMaxDepthwiseKernel);
  if (h.dilation != 1 || v.dilation != 1)
    return Unimplemented("it has no dilation");
  if (std::min(h.pad_before, v.pad_before) < 0)
    return Unimplemented("it cuts nothing off");
  if (x->size() == 0 || NumElements(c.OutputShape()) == 0)
    return Unimplemented("the image is empty");
  const int64_t lanes = VectorFloats();
  return DepthwiseGeometry{c.batch,      (c.groups + lanes - 1) / lanes,
                           h.in,         v.in,
                           h.out,        v.out,
                           h.kernel,     v.kernel,
                           h.stride,     v.stride,
                           h.pad_before, v.pad_before};
}

struct Gradients {
  DepthwiseGeometry g;
  int64_t channels;
  Tensor *x, *w, *dy, *dx, *dw;
  Tensor *packed, *sums, *rows;

  void Run() const {
    Pack();
    DepthwiseGradients(
        g, {x->data<float>(), packed->data<float>(), dy->data<float>()},
        rows->data<float>(), dx != nullptr ? dx->data<float>() : nullptr,
        dw != nullptr ? sums->data<float>() : nullptr);
    if (dw != nullptr) AddPlanes();
  }

  // [C, 1, h, w] -> [C / lanes, h, w, lanes]
  void Pack() const {
    const int64_t lanes = VectorFloats();
    const float* from = w->data<float>();
    float* to = packed->data<float>();
    for (int64_t c = 0; c < g.blocks * lanes; ++c)
      for (int64_t t = 0; t < g.taps(); ++t)
        to[(c / lanes * g.taps() + t) * lanes + c % lanes] =
            c < channels ? from[c * g.taps() + t] : 0.0f;
  }

  void AddPlanes() const {
    const int64_t lanes = VectorFloats(), image = g.blocks * g.taps() * lanes;
    const float* from = sums->data<float>();
    float* to = dw->data<float>();
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < g.taps(); ++t) {
        const float* first =
            from + (c / lanes * g.taps() + t) * lanes + c % lanes;
        double sum = 0;
        for (int64_t n = 0; n < g.batch; ++n) sum += double{first[n * image]};
        to[c * g.taps() + t] = static_cast<float>(sum);
      }
    }
  }
};

}  // namespace

absl::StatusOr<Step> BindDepthwiseGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const DepthwiseGeometry g, ReadDepthwiseProblem(context));
  Gradients s;
  s.g = g;
  Tensor* x = context->Input("Input");
  s.channels = x->dim(1);
  const LayoutPtr layout = BlockedChannels(x->shape());
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Output@GRAD", DType::kFloat32,
                                 {g.batch, s.channels, g.out_h, g.out_w}));
  s.dx = context->Output("Input@GRAD");
  s.dw = context->Output("Filter@GRAD");
  PD_ASSIGN_OR_RETURN(
      s.dy,
      context->In(context->Input("Output@GRAD"),
                  BlockedChannels(context->Input("Output@GRAD")->shape())));
  PD_ASSIGN_OR_RETURN(s.w, context->In(context->Input("Filter"), nullptr));
  if (s.dw != nullptr) {
    PD_ASSIGN_OR_RETURN(s.x, context->In(x, layout));
    PD_ASSIGN_OR_RETURN(s.dw, context->Out(s.dw, nullptr));
  } else {
    context->NoBuffer(x);
    s.x = x;
  }
  if (s.dx != nullptr) {
    PD_ASSIGN_OR_RETURN(s.dx, context->Out(s.dx, layout));
  }
  const auto weights =
      static_cast<size_t>(g.blocks * g.taps() * VectorFloats()) * sizeof(float);
  s.packed = context->Scratch(weights);
  s.sums = context->Scratch(weights * static_cast<size_t>(g.batch));
  s.rows = context->Scratch(DepthwiseScratch(g));
  return Step([s](const RunContext&) {
    s.Run();
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
