// SPDX-License-Identifier: Apache-2.0
// fused_adam: adam, or with use_adamw adamw with coefficient weight_decay, of
// each parameter of a list, with one learning rate.
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

struct FusedAdamSlot {
  const char *list, *one;
};
constexpr FusedAdamSlot kInputs[] = {{"Params", "Param"},
                                     {"Grads", "Grad"},
                                     {"Moments1", "Moment1"},
                                     {"Moments2", "Moment2"},
                                     {"Beta1Pows", "Beta1Pow"},
                                     {"Beta2Pows", "Beta2Pow"},
                                     {"MasterParams", "MasterParam"}};
constexpr FusedAdamSlot kOutputs[] = {
    {"ParamsOut", "ParamOut"},       {"Moments1Out", "Moment1Out"},
    {"Moments2Out", "Moment2Out"},   {"Beta1PowsOut", "Beta1PowOut"},
    {"Beta2PowsOut", "Beta2PowOut"}, {"MasterParamsOut", "MasterParamOut"}};

absl::Status ComposeFusedAdam(Composition* parts) {
  const size_t n = parts->op().Input("Params").size();
  for (const FusedAdamSlot& slot : kInputs) {
    const size_t m = parts->op().Input(slot.list).size();
    if (m != n && m != 0)
      return InvalidArgument("'%s' has %d variables, 'Params' has %d",
                             slot.list, m, n);
  }
  const bool decays = parts->Attr<bool>("use_adamw");
  Composition::Attrs attrs;
  for (const char* name :
       {"beta1", "beta2", "epsilon", "multi_precision", "use_global_beta_pow"})
    attrs[name] = *parts->op().FindAttr(name);
  if (decays) {
    attrs["coeff"] = parts->Attr<float>("weight_decay");
    attrs["with_decay"] = true;
  }
  for (size_t i = 0; i < n; ++i) {
    Composition::Slots in = {{"LearningRate", {parts->In("LearningRate")}}};
    Composition::Slots out;
    for (const FusedAdamSlot& slot : kInputs)
      if (parts->HasInput(slot.list))
        in.push_back({slot.one, {parts->In(slot.list, i)}});
    if (parts->HasInput("SkipUpdate"))
      in.push_back({"SkipUpdate", {parts->In("SkipUpdate")}});
    for (const FusedAdamSlot& slot : kOutputs)
      if (parts->HasOutput(slot.list))
        out.push_back({slot.one, {parts->Out(slot.list, i)}});
    parts->Add(decays ? "adamw" : "adam", in, out, attrs);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterFusedAdam(OpRegistry* registry) {
  OpDef op("fused_adam");
  for (const char* slot :
       {"Params", "Grads", "Moments1", "Moments2", "Beta1Pows", "Beta2Pows"})
    op.Inputs(slot);
  op.Input("LearningRate").OptionalInputs("MasterParams");
  op.OptionalInput("SkipUpdate").OptionalOutputs("MasterParamsOut");
  for (const char* slot : {"ParamsOut", "Moments1Out", "Moments2Out",
                           "Beta1PowsOut", "Beta2PowsOut"})
    op.Outputs(slot);
  op.Attr("beta1", 0.9f).Attr("beta2", 0.999f).Attr("epsilon", 1e-8f);
  op.RequiredAttr("chunk_size", AttrType::kInt).Attr("weight_decay", 0.0f);
  op.Attr("use_adamw", false).Attr("multi_precision", false);
  op.Attr("use_global_beta_pow", false);
  op.Infer(InferComposed<ComposeFusedAdam>).NoGrad();
  op.Reference(BindComposed<ComposeFusedAdam>);
  return registry->Add(std::move(op));
}

}  // namespace pd
