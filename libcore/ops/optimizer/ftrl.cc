// SPDX-License-Identifier: Apache-2.0
// Follow the regularized leader (H. B. McMahan et al., "Ad click prediction: a
// view from the trenches", 2013), with L1 = l1 + 1e-10, L2 = l2 + 1e-10:
//   n = SquaredAccumulator + Grad^2
//   LinearAccumOut = LinearAccumulator + Grad
//       - (n^-lr_power - SquaredAccumulator^-lr_power) / LearningRate * Param
//   ParamOut = (L1 * sign(LinearAccumOut) - LinearAccumOut)
//              / (n^-lr_power / LearningRate + 2 * L2)
//       where |LinearAccumOut| > L1, else 0
//   SquaredAccumOut = n
#include <cmath>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Ftrl : UpdateRule {
  static constexpr std::array<StateSlot, 2> kStates = {
      {{"SquaredAccumulator", "SquaredAccumOut"},
       {"LinearAccumulator", "LinearAccumOut"}}};
  float l1, l2, power;
  explicit Ftrl(BindContext* context)
      : l1(context->Attr<float>("l1")),
        l2(context->Attr<float>("l2")),
        power(context->Attr<float>("lr_power")) {
    sparse = SparseUse::kItsRows;
  }

  template <typename M>
  M Root(M value) const {
    return power == -0.5f ? std::sqrt(value)
                          : std::pow(value, static_cast<M>(-power));
  }

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 2>* states) const {
    auto& [squares, linear] = *states;
    const M bound = static_cast<M>(l1) + static_cast<M>(1e-10);
    const M shrink = static_cast<M>(l2) + static_cast<M>(1e-10);
    const M n = squares + g * g;
    const M root = Root(n);
    linear += g - (root - Root(squares)) / rate * p;
    squares = n;
    if (!(std::fabs(linear) > bound)) return M(0);
    return ((linear > 0 ? bound : -bound) - linear) /
           (root / rate + M(2) * shrink);
  }
};

}  // namespace

absl::Status RegisterFtrl(OpRegistry* registry) {
  OpDef op("ftrl");
  op.Input("Param").Input("SquaredAccumulator").Input("LinearAccumulator");
  op.Input("Grad").Input("LearningRate");
  op.Output("ParamOut").Output("SquaredAccumOut").Output("LinearAccumOut");
  op.Attr("l1", 0.0f).Attr("l2", 0.0f).Attr("lr_power", -0.5f);
  op.Infer(InferRule<Ftrl>).NoGrad().Reference(BindRuleOf<Ftrl>);
  return registry->Add(std::move(op));
}

}  // namespace pd
