// SPDX-License-Identifier: Apache-2.0
// fused_conv2d + residual [+ relu] -> fused_conv2d with ResidualData
//
//   fused_conv2d -> elementwise_add(x, shortcut) -> relu
//
// Also with relu6, and from a conv2d or depthwise_conv2d that has no bias. For
// inference: where a gradient op reads the convolution's output, it stays.
#include <string>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

bool MayTakeResidual(const Match&, const OpDesc& op) {
  return op.type != "fused_conv2d" ||
         (op.Input("ResidualData").empty() &&
          op.Attr<std::string>("fuse_activation").empty());
}

// Both terms have the same known shape, but for extents that the data decides.
bool AddsSameShape(const Match& match, const OpDesc& add) {
  const VarDesc* x = match.graph().Var(add.In("X"));
  const VarDesc* y = match.graph().Var(add.In("Y"));
  return x != nullptr && y != nullptr && x->shape.size() == 4 &&
         x->shape == y->shape;
}

bool ReplaceConvResidual(const Match& match, Fusion* fusion) {
  if (match.HasGradients()) return false;
  OpDesc& fused = fusion->forward;
  fused = match.op("conv");
  fused.type = "fused_conv2d";
  fused.SetInput("ResidualData",
                 match.op("add").Input(match.slot("add") == "X" ? "Y" : "X"));
  fused.SetOutput("Output", match.last().Output("Out"));
  SetFusedActivation(match.Has("act") ? &match.op("act") : nullptr, &fused);
  return true;
}

}  // namespace

absl::Status FuseConvResidual(const PassContext& context,
                              ProgramDesc* program) {
  static const auto* const kPattern =
      new Pattern{PatternOp{"conv",
                            {"fused_conv2d", "conv2d", "depthwise_conv2d"},
                            {"Input"},
                            "Output"}
                      .If(MayTakeResidual),
                  PatternOp{"add", {"elementwise_add"}, {"X", "Y"}, "Out"}.If(
                      AddsSameShape),
                  PatternOp{"act", {"relu", "relu6"}, {"X"}, "Out"}.Optional()};
  return FuseMatches(context, {kPattern}, ReplaceConvResidual, program);
}

}  // namespace pd
