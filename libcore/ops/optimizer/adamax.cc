// SPDX-License-Identifier: Apache-2.0
// MomentOut = beta1 * Moment + (1 - beta1) * Grad
// InfNormOut = max(|Grad|, beta2 * InfNorm + epsilon)
// ParamOut = Param - LearningRate / (1 - Beta1Pow) * MomentOut / InfNormOut
// Beta1Pow is moved on by an op of its own.
#include <algorithm>
#include <cmath>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Adamax : UpdateRule {
  static constexpr std::array<StateSlot, 2> kStates = {
      {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}};
  float beta1, beta2, epsilon;
  Tensor* beta1_pow;
  explicit Adamax(BindContext* context)
      : beta1(context->Attr<float>("beta1")),
        beta2(context->Attr<float>("beta2")),
        epsilon(context->Attr<float>("epsilon")),
        beta1_pow(context->Input("Beta1Pow")) {}

  double Rate(double rate) const { return rate / (1 - ScalarOf(*beta1_pow)); }

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 2>* states) const {
    auto& [moment, norm] = *states;
    const M b1 = static_cast<M>(beta1);
    moment = b1 * moment + (M(1) - b1) * g;
    norm = std::max(std::fabs(g),
                    static_cast<M>(beta2) * norm + static_cast<M>(epsilon));
    return p - rate * (moment / norm);
  }
};

absl::StatusOr<Step> BindAdamax(BindContext* context) {
  PD_RETURN_IF_ERROR(CheckScalar("Beta1Pow", context->Input("Beta1Pow")));
  return BindRule(context, Adamax(context));
}

}  // namespace

absl::Status RegisterAdamax(OpRegistry* registry) {
  OpDef op("adamax");
  op.Input("Param").Input("Grad").Input("LearningRate").Input("Moment");
  op.Input("InfNorm").Input("Beta1Pow").OptionalInput("MasterParam");
  op.Output("ParamOut").Output("MomentOut").Output("InfNormOut");
  op.OptionalOutput("MasterParamOut");
  op.Attr("beta1", 0.9f).Attr("beta2", 0.999f).Attr("epsilon", 1e-8f);
  op.Attr("multi_precision", false);
  op.Infer(InferRule<Adamax>).NoGrad().Reference(BindAdamax);
  return registry->Add(std::move(op));
}

}  // namespace pd
