// SPDX-License-Identifier: Apache-2.0
// momentum, and merged_momentum for lists of parameters:
//   g = Grad, plus regularization_coeff * Param when regularization_method is
//       "l2_decay"
//   VelocityOut = mu * Velocity + g
//   ParamOut = Param - LearningRate * VelocityOut
//   use_nesterov: ParamOut = Param - LearningRate * (g + mu * VelocityOut)
// merged_momentum first multiplies Grad by rescale_grad; momentum does so only
// with selected rows, as PaddlePaddle's CPU kernels do. Rows that are not
// selected have gradient 0; without any row nothing changes.
#include <string>
#include <vector>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Momentum : UpdateRule {
  static constexpr std::array<StateSlot, 1> kStates = {
      {{"Velocity", "VelocityOut"}}};
  float mu, l2, rescale = 1;
  bool nesterov;

  Momentum(BindContext* context, size_t i, float decay)
      : mu(context->Attr<float>("mu")),
        l2(decay),
        nesterov(context->Attr<bool>("use_nesterov")) {
    if (context->op().type == "merged_momentum" ||
        IsSelectedRows(context->Input("Grad", i)))
      rescale = context->Attr<float>("rescale_grad");
  }

  template <typename M>
  M operator()(M p, M grad, M rate, std::array<M, 1>* states) const {
    const M m = static_cast<M>(mu);
    const M g = static_cast<M>(rescale) * grad + static_cast<M>(l2) * p;
    const M v = m * (*states)[0] + g;
    (*states)[0] = v;
    return p - rate * (nesterov ? g + m * v : v);
  }
};

// The coefficient of the decay.
absl::StatusOr<float> DecayOf(const std::string& method, float coeff) {
  if (method == "l2_decay") return coeff;
  if (method.empty()) return 0.0f;
  return InvalidArgument(
      "attr 'regularization_method' is '%s'; expected '' or l2_decay", method);
}

absl::StatusOr<Step> BindMomentum(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      const float decay,
      DecayOf(context->Attr<std::string>("regularization_method"),
              context->Attr<float>("regularization_coeff")));
  return BindRule(context, Momentum(context, 0, decay));
}

absl::StatusOr<Step> BindMergedMomentum(BindContext* context) {
  const auto& methods =
      context->Attr<std::vector<std::string>>("regularization_method");
  const auto& coeffs =
      context->Attr<std::vector<float>>("regularization_coeff");
  const size_t n = context->InputCount("Param");
  if ((!methods.empty() && methods.size() != n) ||
      methods.size() != coeffs.size())
    return InvalidArgument(
        "attrs 'regularization_method' and 'regularization_coeff' hold %d and "
        "%d; expected 0 or %d",
        methods.size(), coeffs.size(), n);
  std::vector<Step> steps;
  for (size_t i = 0; i < n; ++i) {
    PD_ASSIGN_OR_RETURN(const float decay,
                        DecayOf(methods.empty() ? "" : methods[i],
                                coeffs.empty() ? 0 : coeffs[i]));
    PD_ASSIGN_OR_RETURN(Step step,
                        BindRule(context, Momentum(context, i, decay), i));
    steps.push_back(std::move(step));
  }
  return UpdateAll(std::move(steps));
}

absl::Status InferMomentum(InferContext* context) {
  return InferUpdate(context, {"Param", "Velocity", "MasterParam"});
}

}  // namespace

absl::Status RegisterMomentum(OpRegistry* registry) {
  OpDef momentum("momentum");
  momentum.Input("Param").Input("Grad").Input("Velocity");
  momentum.Input("LearningRate").OptionalInput("MasterParam");
  momentum.Output("ParamOut").Output("VelocityOut");
  momentum.OptionalOutput("MasterParamOut");
  momentum.RequiredAttr("mu", AttrType::kFloat)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", std::string())
      .Attr("regularization_coeff", 0.0f)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0f);
  momentum.Infer(InferMomentum).NoGrad().Reference(BindMomentum);
  PD_RETURN_IF_ERROR(registry->Add(std::move(momentum)));

  OpDef merged("merged_momentum");
  merged.Inputs("Param").Inputs("Grad").Inputs("Velocity");
  merged.Inputs("LearningRate").OptionalInputs("MasterParam");
  merged.Outputs("ParamOut").Outputs("VelocityOut");
  merged.OptionalOutputs("MasterParamOut");
  merged.RequiredAttr("mu", AttrType::kFloat)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", std::vector<std::string>())
      .Attr("regularization_coeff", std::vector<float>())
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0f);
  merged.Infer(InferMomentum).NoGrad().Reference(BindMergedMomentum);
  return registry->Add(std::move(merged));
}

}  // namespace pd
