// SPDX-License-Identifier: Apache-2.0
// sgd, and merged_sgd for lists of parameters:
//   ParamOut = Param - LearningRate * Grad
// Selected rows: only those rows of the parameter change.
#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Sgd : UpdateRule {
  static constexpr std::array<StateSlot, 0> kStates = {};
  explicit Sgd(BindContext*) { sparse = SparseUse::kItsRows; }

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 0>*) const {
    return p - rate * g;
  }
};

}  // namespace

absl::Status RegisterSgd(OpRegistry* registry) {
  OpDef sgd("sgd");
  sgd.Input("Param").Input("LearningRate").Input("Grad");
  sgd.OptionalInput("MasterParam");
  sgd.Output("ParamOut").OptionalOutput("MasterParamOut");
  sgd.Attr("multi_precision", false);
  sgd.Infer(InferRule<Sgd>).NoGrad().Reference(BindRuleOf<Sgd>);
  OpDef merged = MergedUpdate(sgd);
  merged.Infer(InferMergedRule<Sgd>).NoGrad();
  merged.Reference(BindMergedRuleOf<Sgd>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(sgd)));
  return registry->Add(std::move(merged));
}

}  // namespace pd
