// SPDX-License-Identifier: Apache-2.0
// rmsprop, and merged_rmsprop for lists of parameters:
// MeanSquareOut = decay * MeanSquare + (1 - decay) * Grad^2
// MomentOut = momentum * Moment
//             + LearningRate * Grad / sqrt(MeanSquareOut + epsilon)
// ParamOut = Param - MomentOut
// centered: MeanGradOut = decay * MeanGrad + (1 - decay) * Grad, and
// MeanGradOut^2 is subtracted under the root; else MeanGrad stays as it is.
#include <cmath>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Numbers : UpdateRule {
  float epsilon, decay, momentum;
  explicit Numbers(BindContext* context)
      : epsilon(context->Attr<float>("epsilon")),
        decay(context->Attr<float>("decay")),
        momentum(context->Attr<float>("momentum")) {}

  // The new moment; `square` is updated.
  template <typename M>
  M Move(M g, M rate, M moment, M square, M mean) const {
    return static_cast<M>(momentum) * moment +
           rate * g / std::sqrt(square - mean * mean + static_cast<M>(epsilon));
  }
  template <typename M>
  M Average(M mean, M value) const {
    const M keep = static_cast<M>(decay);
    return keep * mean + (M(1) - keep) * value;
  }
};

struct Uncentered : Numbers {
  static constexpr std::array<StateSlot, 2> kStates = {
      {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}}};
  using Numbers::Numbers;

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 2>* states) const {
    auto& [square, moment] = *states;
    square = Average(square, g * g);
    moment = Move(g, rate, moment, square, M(0));
    return p - moment;
  }
};

struct Centered : Numbers {
  static constexpr std::array<StateSlot, 3> kStates = {
      {{"MeanSquare", "MeanSquareOut"},
       {"Moment", "MomentOut"},
       {"MeanGrad", "MeanGradOut"}}};
  using Numbers::Numbers;

  template <typename M>
  M operator()(M p, M g, M rate, std::array<M, 3>* states) const {
    auto& [square, moment, mean] = *states;
    square = Average(square, g * g);
    mean = Average(mean, g);
    moment = Move(g, rate, moment, square, mean);
    return p - moment;
  }
};

absl::StatusOr<Step> BindOneRmsprop(BindContext* context, size_t i) {
  if (context->Attr<bool>("centered"))
    return BindRule(context, Centered(context), i);
  PD_ASSIGN_OR_RETURN(Step step, BindRule(context, Uncentered(context), i));
  Tensor* mean = context->Input("MeanGrad", i);
  Tensor* mean_out = context->Output("MeanGradOut", i);
  if (mean == nullptr || mean_out == nullptr) return step;
  PD_RETURN_IF_ERROR(CheckAlike(*context, "MeanSquare", "MeanGrad", i));
  context->MayShare(mean, mean_out);
  return Step([mean, mean_out, step](const RunContext& run) {
    CopyUnlessSame(mean, mean_out);
    return step(run);
  });
}

absl::StatusOr<Step> BindRmsprop(BindContext* context) {
  return BindOneRmsprop(context, 0);
}

absl::StatusOr<Step> BindMergedRmsprop(BindContext* context) {
  std::vector<Step> steps;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Step step, BindOneRmsprop(context, i));
    steps.push_back(std::move(step));
  }
  return UpdateAll(std::move(steps));
}

absl::Status InferRmsprop(InferContext* context) {
  PD_RETURN_IF_ERROR(InferRule<Uncentered>(context));
  context->Share(context->HasInput("MeanGrad") ? "MeanGrad" : "MeanSquare",
                 "MeanGradOut");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterRmsprop(OpRegistry* registry) {
  OpDef op("rmsprop");
  op.Input("Param").Input("MeanSquare").Input("Grad").Input("Moment");
  op.Input("LearningRate").OptionalInput("MeanGrad");
  op.OptionalInput("MasterParam");
  op.Output("ParamOut").Output("MomentOut").Output("MeanSquareOut");
  op.OptionalOutput("MeanGradOut").OptionalOutput("MasterParamOut");
  op.Attr("epsilon", 1e-10f).Attr("decay", 0.9f).Attr("momentum", 0.0f);
  op.Attr("centered", false).Attr("multi_precision", false);
  OpDef merged = MergedUpdate(op);
  merged.Infer(InferMergedRule<Centered>).NoGrad().Reference(BindMergedRmsprop);
  op.Infer(InferRmsprop).NoGrad().Reference(BindRmsprop);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(merged));
}

}  // namespace pd
