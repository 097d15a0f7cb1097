// SPDX-License-Identifier: Apache-2.0
// batch_norm -> relu or relu6 -> fused_batch_norm_act
//
//   forward:   batch_norm -> relu                 fused_batch_norm_act
//   backward:  relu_grad -> batch_norm_grad       fused_batch_norm_act_grad
#include <string>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

OpDesc BatchNormActFused(const OpDesc& norm, const OpDesc& act,
                         const std::string& type) {
  OpDesc fused = norm;
  fused.type = type;
  const bool relu6 = act.type == "relu6" || act.type == "relu6_grad";
  fused.attrs["act_type"] = std::string(relu6 ? "relu6" : "relu");
  if (relu6) fused.attrs["fuse_alpha"] = act.Attr<float>("threshold");
  return fused;
}

bool ReplaceBatchNormAct(const Match& match, Fusion* fusion) {
  const OpDesc &norm = match.op("norm"), &act = match.op("act");
  if (norm.Input("Scale").empty() || norm.Input("Bias").empty()) return false;
  fusion->forward = BatchNormActFused(norm, act, "fused_batch_norm_act");
  fusion->forward.SetOutput("Y", act.Output("Out"));
  // The norm's other results may be read before the activation.
  fusion->forward_at = FusedAt::kFirst;
  if (!match.HasGradients()) return true;
  const OpDesc& act_grad = *match.grad("act");
  fusion->backward = BatchNormActFused(*match.grad("norm"), act_grad,
                                       "fused_batch_norm_act_grad");
  fusion->backward.SetInput("Y", act.Output("Out"));
  fusion->backward.SetInput("Y@GRAD", act_grad.Input("Out@GRAD"));
  return true;
}

}  // namespace

absl::Status FuseBatchNormAct(const PassContext& context,
                              ProgramDesc* program) {
  static const auto* const kPattern =
      new Pattern{PatternOp{"norm", {"batch_norm"}, {"X"}, "Y"},
                  PatternOp{"act", {"relu", "relu6"}, {"X"}, "Out"}};
  return FuseMatches(context, {kPattern}, ReplaceBatchNormAct, program);
}

}  // namespace pd
