// SPDX-License-Identifier: Apache-2.0
// AvgSquaredGradOut = rho * AvgSquaredGrad + (1 - rho) * Grad^2
// u = -sqrt((AvgSquaredUpdate + epsilon) / (AvgSquaredGradOut + epsilon)) *
// Grad AvgSquaredUpdateOut = rho * AvgSquaredUpdate + (1 - rho) * u^2 ParamOut
// = Param + LearningRate * u
#include <cmath>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Adadelta : UpdateRule {
  static constexpr std::array<StateSlot, 2> kStates = {
      {{"AvgSquaredGrad", "AvgSquaredGradOut"},
       {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}};
  float rho, epsilon;
  explicit Adadelta(BindContext* context)
      : rho(context->Attr<float>("rho")),
        epsilon(context->Attr<float>("epsilon")) {}

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 2>* states) const {
    const M keep = static_cast<M>(rho), e = static_cast<M>(epsilon);
    auto& [grads, updates] = *states;
    grads = keep * grads + (M(1) - keep) * g * g;
    const M u = -(std::sqrt(updates + e) / std::sqrt(grads + e) * g);
    updates = keep * updates + (M(1) - keep) * u * u;
    return p + rate * u;
  }
};

}  // namespace

absl::Status RegisterAdadelta(OpRegistry* registry) {
  OpDef op("adadelta");
  op.Input("Param").Input("Grad").Input("AvgSquaredGrad");
  op.Input("AvgSquaredUpdate").Input("LearningRate");
  op.OptionalInput("MasterParam");
  op.Output("ParamOut").Output("AvgSquaredGradOut");
  op.Output("AvgSquaredUpdateOut").OptionalOutput("MasterParamOut");
  op.Attr("rho", 0.95f).Attr("epsilon", 1e-6f).Attr("multi_precision", false);
  op.Infer(InferRule<Adadelta>).NoGrad().Reference(BindRuleOf<Adadelta>);
  return registry->Add(std::move(op));
}

}  // namespace pd
