// SPDX-License-Identifier: Apache-2.0
// conv2d and fused_conv2d of few pixels with many constant weights.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/conv_args.h"
#include "libcore/kernels/cpu/panels.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {
namespace {

// Measured with layers of ResNet-50 and MobileNetV2: of more pixels the
// computing takes longer than the reading, fewer weights are in the caches.
constexpr int64_t kMostPixels = 100;
constexpr int64_t kFewestWeights = 1 << 19;

absl::StatusOr<ConvGeometry> ReadConvPanelsGeometry(BindContext* context) {
  const Tensor* x = context->Input("Input");
  const Tensor* w = context->Input("Filter");
  if (x->dtype() != DType::kFloat32 || w->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (context->IsTraining() || !context->IsConstant(w))
    return Unimplemented("it is for weights that are not trained");
  PD_ASSIGN_OR_RETURN(ConvGeometry g,
                      ReadConv(context->op(), x->shape(), w->shape()));
  if (g.axes.size() != 2 || g.groups != 1 || g.channels_last)
    return Unimplemented("it is for images in NCHW without groups");
  const int64_t pixels = g.batch * g.axes[0].out * g.axes[1].out;
  if (x->size() == 0 || pixels == 0) return Unimplemented("the image is empty");
  if (pixels > kMostPixels || w->size() < kFewestWeights)
    return Unimplemented(
        "it is for %d weights and more, %d pixels at most, not %d and %d",
        kFewestWeights, kMostPixels, w->size(), pixels);
  return g;
}

}  // namespace

absl::StatusOr<Step> BindConvPanels(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const ConvGeometry g, ReadConvPanelsGeometry(context));
  PD_ASSIGN_OR_RETURN(const ConvVariables variables,
                      BindConvVariables(context));
  Tensor* w = context->Input("Filter");
  PD_ASSIGN_OR_RETURN(w, context->In(w, PanelWeights(w->shape())));
  Tensor* scratch =
      context->Scratch(static_cast<size_t>(PanelScratch(g)) * sizeof(float));
  return Step([=](const RunContext&) {
    ConvArgs args = variables.Args();
    args.weights = w->data<float>();
    args.scratch = scratch->data<float>();
    ConvPanels(g, args);
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
