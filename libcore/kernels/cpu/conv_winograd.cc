// SPDX-License-Identifier: Apache-2.0
// conv2d and fused_conv2d with windows of 3 by 3 by Winograd's algorithm.
// Weights that do not change may be transformed once. In training the forward
// pass decides which side of a ReLU or which element of a maximum passes a
// gradient on, so it rounds as little as it can: tiles are of 2 by 2 then.
#include <memory>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/conv_args.h"
#include "libcore/kernels/cpu/kept_weights.h"
#include "libcore/kernels/cpu/vector_floats.h"
#include "libcore/kernels/cpu/winograd.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {
namespace {

// The cost of a convolution, in units of one multiplication or addition of a
// direct one; fitted to measurements of sizes from 7 x 7 x 512 to 56 x 56 x 64,
// one image and 16. Reading the weights from memory takes as long as some 30
// operations a weight.
constexpr double kPerWeight = 30;

double DirectCost(const WinogradGeometry& g, double pairs) {
  constexpr double kTaps = 9;
  const auto pixels = static_cast<double>(g.batch * g.out_h * g.out_w);
  return pairs * kTaps * (2 * pixels + kPerWeight);
}

// `made`: the weights are transformed in the call.
double Cost(const WinogradGeometry& g, double channels, double pairs,
            bool made) {
  const double per_tile = g.tile == 2 ? 650 : 2200;
  const double per_window = made ? 12 * static_cast<double>(g.Points()) : 0;
  const auto tiles = static_cast<double>(g.Tiles());
  const auto reads = static_cast<double>(WinogradReads(g));
  return pairs * static_cast<double>(g.Points()) *
             (2 * tiles + kPerWeight * reads) +
         channels * tiles * per_tile + pairs * per_window;
}

// A convolution for this algorithm.
struct Choice {
  WinogradGeometry g;
  bool keep = false;  // the transformed weights, from one run to the next
};

// Transformed weights take twice (tiles of 2 by 2) or four times the memory of
// the filter. They are kept where that saves a part of the time that can be
// felt, and where it is not too much.
bool WorthKeeping(const WinogradGeometry& g, double kept, double made) {
  constexpr double kSaves = 1.05;
  constexpr int64_t kMostKept = 4 << 20;  // floats
  return made > kSaves * kept &&
         (g.tile == 2 || WinogradWeights(g) <= kMostKept);
}

// Sets the size of tiles, or says that the direct sum is faster.
absl::Status ChooseTile(bool training, bool frozen, Choice* choice) {
  constexpr double kMargin = 1.2;  // covers the memory for weights, too
  WinogradGeometry g = choice->g;
  const int64_t lanes = VectorFloats();
  const auto whole = [lanes](int64_t channels) {
    return static_cast<double>((channels + lanes - 1) / lanes * lanes);
  };
  const double in = whole(g.in_channels), out = whole(g.out_channels);
  const double direct = DirectCost(g, in * out) / kMargin;
  double best = direct;
  for (const int64_t tile : {2, 4}) {
    if (training && tile > 2) continue;
    g.tile = tile;
    const double made = Cost(g, in + out, in * out, true);
    const double kept = Cost(g, in + out, in * out, false);
    const bool keep = frozen && WorthKeeping(g, kept, made);
    const double cost = keep ? kept : made;
    if (cost >= best) continue;
    best = cost;
    *choice = {g, keep};
  }
  if (best < direct) return absl::OkStatus();
  return Unimplemented(
      "the direct sum is faster for %d to %d channels of %d "
      "images of %d by %d",
      g.in_channels, g.out_channels, g.batch, g.in_h, g.in_w);
}

absl::StatusOr<Choice> ReadConvWinogradGeometry(BindContext* context) {
  const Tensor* x = context->Input("Input");
  const Tensor* w = context->Input("Filter");
  if (x->dtype() != DType::kFloat32 || w->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(const ConvGeometry c,
                      ReadConv(context->op(), x->shape(), w->shape()));
  if (c.axes.size() != 2 || c.groups != 1 || c.channels_last)
    return Unimplemented("it is for images in NCHW without groups");
  for (const WindowAxis& axis : c.axes)
    if (axis.kernel != 3 || axis.stride != 1 || axis.dilation != 1 ||
        axis.pad_before < 0)
      return Unimplemented(
          "it is for windows of 3 by 3, stride and dilation 1");
  if (x->size() == 0 || NumElements(c.OutputShape()) == 0)
    return Unimplemented("the image is empty");
  const WindowAxis &h = c.axes[0], &v = c.axes[1];
  Choice choice;
  choice.g = {c.batch, c.in_channels, c.out_channels, h.in,        v.in,
              h.out,   v.out,         h.pad_before,   v.pad_before};
  PD_RETURN_IF_ERROR(
      ChooseTile(context->IsTraining(), context->IsFrozen(w), &choice));
  return choice;
}

// The transformed weights: kept, or made anew from `filter` in each run.
struct Weights {
  WinogradGeometry g;
  KeptWeights kept;
  Tensor *filter = nullptr, *made = nullptr;

  const float* Get() const {
    if (kept != nullptr) return kept->data();
    WinogradTransform(g, filter->data<float>(), made->data<float>());
    return made->data<float>();
  }
};

absl::StatusOr<Weights> BindWeights(BindContext* context,
                                    const Choice& choice) {
  Weights w;
  const WinogradGeometry& g = w.g = choice.g;
  w.filter = context->Input("Filter");
  const LayoutPtr layout = BlockedWeights(w.filter->shape());
  const auto floats = static_cast<size_t>(WinogradWeights(g));
  if (!choice.keep) {
    PD_ASSIGN_OR_RETURN(w.filter, context->In(w.filter, layout));
    w.made = context->Scratch(floats * sizeof(float));
    return w;
  }
  PD_ASSIGN_OR_RETURN(
      w.kept,
      KeepWeights(w.filter, static_cast<int>(g.tile),
                  [&]() -> absl::StatusOr<KeptWeights> {
                    Tensor blocks(DType::kFloat32, w.filter->shape());
                    blocks.set_layout(layout);
                    PD_RETURN_IF_ERROR(blocks.Allocate());
                    CopyElements(*w.filter, &blocks);
                    auto kept = std::make_shared<std::vector<float>>(floats);
                    WinogradTransform(g, blocks.data<float>(), kept->data());
                    return kept;
                  }));
  return w;
}

}  // namespace

absl::StatusOr<Step> BindConvWinograd(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Choice choice, ReadConvWinogradGeometry(context));
  const WinogradGeometry& g = choice.g;
  PD_ASSIGN_OR_RETURN(const ConvVariables variables,
                      BindConvVariables(context));
  if (variables.residual != nullptr && variables.residual != variables.x)
    context->MayShare(variables.residual, variables.y);
  PD_ASSIGN_OR_RETURN(const Weights weights, BindWeights(context, choice));
  Tensor* scratch =
      context->Scratch(static_cast<size_t>(WinogradScratch(g)) * sizeof(float));
  return Step([=, g = choice.g](const RunContext&) {
    ConvArgs args = variables.Args();
    args.weights = weights.Get();
    args.scratch = scratch->data<float>();
    Winograd(g, args);
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
