// SPDX-License-Identifier: Apache-2.0
// elementwise_add of two tensors of one shape -> relu
//   -> fused_elemwise_activation
// Their gradient ops stay: relu_grad reads the ReLU's result alone, and
// elementwise_add_grad only hands its gradient on, which is an alias on a GPU.
// For GPUs, where both ops wait for memory.
#include <string>
#include <vector>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

bool AddsOneShape(const Match& match, const OpDesc& add) {
  const VarDesc* x = match.graph().Var(add.In("X"));
  const VarDesc* y = match.graph().Var(add.In("Y"));
  return x != nullptr && y != nullptr && x->shape == y->shape &&
         x->dtype == y->dtype && IsFloating(x->dtype);
}

bool ReplaceAddAct(const Match& match, Fusion* fusion) {
  const OpDesc &add = match.op("add"), &act = match.op("act");
  OpDesc& fused = fusion->forward;
  fused.type = "fused_elemwise_activation";
  fused.SetInput("X", add.Input("X"));
  fused.SetInput("Y", add.Input("Y"));
  fused.SetOutput("Out", act.Output("Out"));
  fused.attrs["functor_list"] =
      std::vector<std::string>{"relu", "elementwise_add"};
  CopyOpAttrs({&add, &act}, &fused);
  return true;
}

}  // namespace

absl::Status FuseAddAct(const PassContext& context, ProgramDesc* program) {
  static const auto* const kForward = new Pattern{
      PatternOp{"add", {"elementwise_add"}, {"X"}, "Out"}.KeepsGradient().If(
          AddsOneShape),
      PatternOp{"act", {"relu"}, {"X"}, "Out"}.KeepsGradient()};
  if (!context.on_gpu) return absl::OkStatus();
  return FuseMatches(context, {kForward}, ReplaceAddAct, program);
}

}  // namespace pd
