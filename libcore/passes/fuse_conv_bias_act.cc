// SPDX-License-Identifier: Apache-2.0
// conv2d [+ elementwise_add of a bias per channel] [+ relu] -> fused_conv2d
// The same with depthwise_conv2d, and with relu6.
//
//   forward:   conv2d -> elementwise_add -> relu      fused_conv2d
//   backward:  relu_grad -> elementwise_add_grad      fused_conv2d_grad
//                -> conv2d_grad
#include <string>
#include <vector>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

bool IsConvBias(const Match& match, const OpDesc& add) {
  const OpDesc& conv = match.op("conv");
  const VarDesc* bias = match.graph().Var(add.In("Y"));
  const VarDesc* filter = match.graph().Var(conv.In("Filter"));
  if (bias == nullptr || filter == nullptr || filter->shape.size() != 4 ||
      bias->shape != Shape{filter->shape[0]})
    return false;
  const bool last = conv.Attr<std::string>("data_format") == "NHWC";
  const int32_t axis = add.Attr<int32_t>("axis");
  return last ? axis == -1 || axis == 3 : axis == 1;
}

// The convolution as an op of its own, or its gradient op, with what both have.
OpDesc ConvBiasFused(const Match& match, const OpDesc& conv,
                     const std::string& type) {
  OpDesc fused;
  fused.type = type;
  fused.attrs = conv.attrs;
  fused.SetInput("Input", conv.Input("Input"));
  fused.SetInput("Filter", conv.Input("Filter"));
  SetFusedActivation(match.Has("act") ? &match.op("act") : nullptr, &fused);
  return fused;
}

OpDesc ConvBiasBackward(const Match& match) {
  const OpDesc &conv = *match.grad("conv"), *add = match.grad("add");
  OpDesc fused = ConvBiasFused(match, conv, "fused_conv2d_grad");
  fused.SetInput("Output", match.last().Output("Out"));
  fused.SetInput("Output@GRAD",
                 match.graph().op(match.Backward().front()).Input("Out@GRAD"));
  for (const char* slot : {"Input@GRAD", "Filter@GRAD"})
    if (!conv.Output(slot).empty()) fused.SetOutput(slot, conv.Output(slot));
  std::vector<const OpDesc*> from = {&conv};
  if (add != nullptr) {
    fused.SetInput("Bias", match.op("add").Input("Y"));
    if (!add->Output("Y@GRAD").empty())
      fused.SetOutput("Bias@GRAD", add->Output("Y@GRAD"));
    from.push_back(add);
  }
  CopyOpAttrs(from, &fused);
  return fused;
}

bool ReplaceConvBias(const Match& match, Fusion* fusion) {
  if (match.Forward().size() == 1) return false;
  fusion->forward = ConvBiasFused(match, match.op("conv"), "fused_conv2d");
  if (match.Has("add"))
    fusion->forward.SetInput("Bias", match.op("add").Input("Y"));
  fusion->forward.SetOutput("Output", match.last().Output("Out"));
  if (match.HasGradients()) fusion->backward = ConvBiasBackward(match);
  return true;
}

}  // namespace

absl::Status FuseConvBiasAct(const PassContext& context, ProgramDesc* program) {
  static const auto* const kPattern = new Pattern{
      PatternOp{"conv", {"conv2d", "depthwise_conv2d"}, {"Input"}, "Output"},
      PatternOp{"add", {"elementwise_add"}, {"X"}, "Out"}.Optional().If(
          IsConvBias),
      PatternOp{"act", {"relu", "relu6"}, {"X"}, "Out"}.Optional()};
  return FuseMatches(context, {kPattern}, ReplaceConvBias, program);
}

}  // namespace pd
