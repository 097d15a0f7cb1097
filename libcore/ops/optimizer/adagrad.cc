// SPDX-License-Identifier: Apache-2.0
// adagrad, and merged_adagrad for lists of parameters:
//                   MomentOut = Moment + Grad^2
// decayed_adagrad:  MomentOut = decay * Moment + (1 - decay) * Grad^2
//   ParamOut = Param - LearningRate * Grad / (sqrt(MomentOut) + epsilon)
// proximal_gd:      q = Param - LearningRate * Grad
// proximal_adagrad: MomentOut = Moment + Grad^2,
//                   q = Param - LearningRate * Grad / sqrt(MomentOut)
//   ParamOut = sign(q) * max(|q| - LearningRate * l1, 0)
//              / (1 + LearningRate * l2)
// (J. Duchi, Y. Singer, "Efficient online and batch learning using forward
// backward splitting", 2009, for the last two.)
#include <algorithm>
#include <cmath>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Adagrad : UpdateRule {
  static constexpr std::array<StateSlot, 1> kStates = {
      {{"Moment", "MomentOut"}}};
  float epsilon;
  explicit Adagrad(BindContext* context)
      : epsilon(context->Attr<float>("epsilon")) {
    sparse = SparseUse::kItsRows;
  }

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 1>* states) const {
    M& moment = (*states)[0];
    moment += g * g;
    return p - rate * g / (std::sqrt(moment) + static_cast<M>(epsilon));
  }
};

struct DecayedAdagrad : UpdateRule {
  static constexpr std::array<StateSlot, 1> kStates = {
      {{"Moment", "MomentOut"}}};
  float decay, epsilon;
  explicit DecayedAdagrad(BindContext* context)
      : decay(context->Attr<float>("decay")),
        epsilon(context->Attr<float>("epsilon")) {}

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 1>* states) const {
    M& moment = (*states)[0];
    moment = static_cast<M>(decay) * moment + static_cast<M>(1 - decay) * g * g;
    return p - rate * g / (std::sqrt(moment) + static_cast<M>(epsilon));
  }
};

struct Shrink {
  float l1, l2;
  explicit Shrink(BindContext* context)
      : l1(context->Attr<float>("l1")), l2(context->Attr<float>("l2")) {}

  template <typename M>
  M operator()(M q, M rate) const {
    const M down = M(1) + rate * static_cast<M>(l2);
    if (!(l1 > 0)) return q / down;
    const M size =
        std::max(std::fabs(q) - rate * static_cast<M>(l1), M(0)) / down;
    return q > 0 ? size : q < 0 ? -size : q;
  }
};

struct ProximalGd : UpdateRule {
  static constexpr std::array<StateSlot, 0> kStates = {};
  Shrink shrink;
  explicit ProximalGd(BindContext* context) : shrink(context) {}

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 0>*) const {
    return shrink(p - rate * g, rate);
  }
};

struct ProximalAdagrad : UpdateRule {
  static constexpr std::array<StateSlot, 1> kStates = {
      {{"Moment", "MomentOut"}}};
  Shrink shrink;
  explicit ProximalAdagrad(BindContext* context) : shrink(context) {
    sparse = SparseUse::kItsRows;
  }

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 1>* states) const {
    M& moment = (*states)[0];
    moment += g * g;
    return shrink(p - rate * g / std::sqrt(moment), rate);
  }
};

}  // namespace

absl::Status RegisterAdagrad(OpRegistry* registry) {
  OpDef adagrad("adagrad");
  adagrad.Input("Param").Input("Grad").Input("Moment").Input("LearningRate");
  adagrad.OptionalInput("MasterParam");
  adagrad.Output("ParamOut").Output("MomentOut");
  adagrad.OptionalOutput("MasterParamOut");
  adagrad.Attr("epsilon", 1e-6f).Attr("multi_precision", false);
  adagrad.Infer(InferRule<Adagrad>).NoGrad().Reference(BindRuleOf<Adagrad>);
  OpDef merged = MergedUpdate(adagrad);
  merged.Infer(InferMergedRule<Adagrad>).NoGrad();
  merged.Reference(BindMergedRuleOf<Adagrad>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(adagrad)));
  PD_RETURN_IF_ERROR(registry->Add(std::move(merged)));

  OpDef decayed("decayed_adagrad");
  decayed.Input("Param").Input("Grad").Input("Moment").Input("LearningRate");
  decayed.Output("ParamOut").Output("MomentOut");
  decayed.Attr("decay", 0.95f).Attr("epsilon", 1e-6f);
  decayed.Infer(InferRule<DecayedAdagrad>).NoGrad();
  decayed.Reference(BindRuleOf<DecayedAdagrad>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(decayed)));

  OpDef proximal("proximal_gd");
  proximal.Input("Param").Input("Grad").Input("LearningRate");
  proximal.Output("ParamOut").Attr("l1", 0.0f).Attr("l2", 0.0f);
  proximal.Infer(InferRule<ProximalGd>).NoGrad();
  proximal.Reference(BindRuleOf<ProximalGd>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(proximal)));

  OpDef both("proximal_adagrad");
  both.Input("Param").Input("Moment").Input("Grad").Input("LearningRate");
  both.Output("ParamOut").Output("MomentOut");
  both.Attr("l1", 0.0f).Attr("l2", 0.0f);
  both.Infer(InferRule<ProximalAdagrad>).NoGrad();
  both.Reference(BindRuleOf<ProximalAdagrad>);
  return registry->Add(std::move(both));
}

}  // namespace pd
