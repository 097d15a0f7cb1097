// SPDX-License-Identifier: Apache-2.0
// A sum of two tensors of one shape and the ReLU beside it are one op:
//
//   forward:   elementwise_add -> relu    fused_elemwise_activation
//   backward:  sum -> relu_grad           sum_relu_grad
//
// The backward `sum` is that of the gradients of the ReLU's two readers. The
// gradient ops of the forward chain stay: relu_grad reads the ReLU's result
// alone, and elementwise_add_grad only hands its gradient on, which is an alias
// on a GPU. For GPUs, where all these ops wait for memory.
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

// Of dense tensors: a relu_grad reads their sum.
bool AddsTwo(const Match& match, const OpDesc& sum) {
  for (const std::string& name : sum.Input("X")) {
    const VarDesc* var = match.graph().Var(name);
    if (var == nullptr || var->kind != VarKind::kLodTensor) return false;
  }
  return sum.Input("X").size() == 2;
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

bool ReplaceSumGrad(const Match& match, Fusion* fusion) {
  const OpDesc &sum = match.op("sum"), &gate = match.op("gate");
  OpDesc& fused = fusion->forward;
  fused.type = "sum_relu_grad";
  fused.SetInput("X", sum.Input("X"));
  fused.SetInput("Out", gate.Input("Out"));
  fused.SetOutput("X@GRAD", gate.Output("X@GRAD"));
  CopyOpAttrs({&sum, &gate}, &fused);
  return true;
}

}  // namespace

absl::Status FuseAddAct(const PassContext& context, ProgramDesc* program) {
  static const auto* const kForward = new Pattern{
      PatternOp{"add", {"elementwise_add"}, {"X"}, "Out"}.KeepsGradient().If(
          AddsOneShape),
      PatternOp{"act", {"relu"}, {"X"}, "Out"}.KeepsGradient()};
  static const auto* const kBackward =
      new Pattern{PatternOp{"sum", {"sum"}, {"X"}, "Out"}.If(AddsTwo),
                  PatternOp{"gate", {"relu_grad"}, {"Out@GRAD"}, "X@GRAD"}};
  if (!context.on_gpu) return absl::OkStatus();
  return FuseMatches(
      context, {kForward, kBackward},
      [](const Match& match, Fusion* fusion) {
        return match.Has("add") ? ReplaceAddAct(match, fusion)
                                : ReplaceSumGrad(match, fusion);
      },
      program);
}

}  // namespace pd
