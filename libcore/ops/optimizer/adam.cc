// SPDX-License-Identifier: Apache-2.0
// adam and adamw; merged_adam and merged_adamw for lists of parameters:
//   Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
//   Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad^2
//   rate = LearningRate * sqrt(1 - Beta2Pow) / (1 - Beta1Pow)
//   ParamOut = Param - rate * Moment1Out /
//              (sqrt(Moment2Out) + epsilon * sqrt(1 - Beta2Pow))
//   Beta1PowOut = beta1 * Beta1Pow, Beta2PowOut = beta2 * Beta2Pow, unless
//   use_global_beta_pow (somebody else then moves them on)
// adamw with with_decay: Param is first multiplied by
// 1 - LearningRate * lr_ratio * coeff, every row of it. As in PaddlePaddle's
// CPU kernel, lr_ratio is not part of `rate`. merged_adamw has lists of coeff
// and lr_ratio, and no with_decay: a coeff is 0 instead.
// Selected rows: in lazy_mode the other rows stay as they are, moments too;
// else their gradient is 0. Powers of beta that are updated in place are then
// moved on before they are used. Without any row nothing changes.
// SkipUpdate true: every output is a copy of its input. Beta1Tensor and the
// like replace the attributes, step by step.
#include <algorithm>
#include <cmath>
#include <vector>

#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// An attribute, or the tensor that stands for it.
struct Number {
  double value = 0;
  Tensor* tensor = nullptr;
  double Get() const { return tensor != nullptr ? ScalarOf(*tensor) : value; }
};

struct Adam : UpdateRule {
  static constexpr bool kPerRun = true;
  static constexpr std::array<StateSlot, 2> kStates = {
      {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}};
  Number beta1, beta2, epsilon;
  double decay = 0;  // of adamw, per learning rate
  Tensor *beta1_pow, *beta2_pow, *beta1_pow_out, *beta2_pow_out;
  bool global_beta_pow = false;
  bool ahead = false;  // the powers are moved on before they are used
  Tensor* skip = nullptr;

  // Coefficients that all elements share in one run.
  template <typename M>
  struct Run {
    M beta1, beta2, epsilon, rate, decay;

    M operator()(M p, M g, std::array<M, 2>* states) const {
      auto& [m1, m2] = *states;
      m1 = beta1 * m1 + (M(1) - beta1) * g;
      m2 = beta2 * m2 + (M(1) - beta2) * g * g;
      return p - decay * p - rate * (m1 / (std::sqrt(m2) + epsilon));
    }
  };

  template <typename M>
  Run<M> Formula(double rate) const {
    Run<M> run;
    run.beta1 = static_cast<M>(beta1.Get());
    run.beta2 = static_cast<M>(beta2.Get());
    const double pow1 = ScalarOf(*beta1_pow) * (ahead ? run.beta1 : M(1));
    const double pow2 = ScalarOf(*beta2_pow) * (ahead ? run.beta2 : M(1));
    const double correction = std::sqrt(1 - pow2);
    run.rate = static_cast<M>(rate * correction / (1 - pow1));
    run.epsilon = static_cast<M>(epsilon.Get() * correction);
    run.decay = static_cast<M>(rate * decay);
    return run;
  }

  void MovePowers() const {
    const double pow1 = ScalarOf(*beta1_pow), pow2 = ScalarOf(*beta2_pow);
    const bool move = !global_beta_pow;
    SetScalar(beta1_pow_out, move ? pow1 * beta1.Get() : pow1);
    SetScalar(beta2_pow_out, move ? pow2 * beta2.Get() : pow2);
  }
};

absl::Status ReadPower(BindContext* context, const char* slot,
                       const char* out_slot, size_t i, Tensor** in,
                       Tensor** out) {
  *in = context->Input(slot, i);
  *out = context->Output(out_slot, i);
  PD_RETURN_IF_ERROR(CheckScalar(slot, *in));
  if (*out == nullptr)
    return InvalidArgument("'%s' %d is missing", out_slot, i);
  context->MayShare(*in, *out);
  return absl::OkStatus();
}

absl::StatusOr<Adam> ReadAdam(BindContext* context, size_t i) {
  Adam adam;
  adam.beta1.value = context->Attr<float>("beta1");
  adam.beta2.value = context->Attr<float>("beta2");
  adam.epsilon.value = context->Attr<float>("epsilon");
  adam.global_beta_pow = context->Attr<bool>("use_global_beta_pow");
  PD_RETURN_IF_ERROR(ReadPower(context, "Beta1Pow", "Beta1PowOut", i,
                               &adam.beta1_pow, &adam.beta1_pow_out));
  PD_RETURN_IF_ERROR(ReadPower(context, "Beta2Pow", "Beta2PowOut", i,
                               &adam.beta2_pow, &adam.beta2_pow_out));
  adam.ahead = IsSelectedRows(context->Input("Grad", i)) &&
               !adam.global_beta_pow &&
               context->op().Input("Beta1Pow")[i] ==
                   context->op().Output("Beta1PowOut")[i];
  return adam;
}

absl::Status ReadNumber(BindContext* context, const char* slot,
                        Number* number) {
  number->tensor = context->Input(slot);
  return number->tensor == nullptr ? absl::OkStatus()
                                   : CheckScalar(slot, number->tensor);
}

// The rule as one step, and the powers after it.
absl::StatusOr<Step> BindWithPowers(BindContext* context, const Adam& adam,
                                    size_t i) {
  PD_ASSIGN_OR_RETURN(Step step, BindRule(context, adam, i));
  const Tensor* grad = context->Input("Grad", i);
  return Step([adam, grad, step = std::move(step)](const RunContext& run) {
    PD_RETURN_IF_ERROR(step(run));
    if (IsSelectedRows(grad) && grad->rows().empty()) {
      CopyUnlessSame(adam.beta1_pow, adam.beta1_pow_out);
      CopyUnlessSame(adam.beta2_pow, adam.beta2_pow_out);
    } else {
      adam.MovePowers();
    }
    return absl::OkStatus();
  });
}

// adamw in lazy mode: what the rule left alone decays.
absl::StatusOr<Step> DecayOtherRows(BindContext* context, double decay,
                                    size_t i) {
  PD_ASSIGN_OR_RETURN(const UpdatedParam p, ReadUpdatedParam(context, i));
  const int64_t height = p.param->dim(0), width = RowWidth(*p.param);
  Tensor* touched = context->Scratch(static_cast<size_t>(height) + 1);
  return DispatchUpdate(
      p, [&](auto param, auto, auto state) -> absl::StatusOr<Step> {
        using T = typename decltype(param)::type;
        using M = typename decltype(state)::type;
        return Step([=](const RunContext&) {
          uint8_t* marks = touched->data<uint8_t>();
          std::fill(marks, marks + height, uint8_t{0});
          for (const int64_t row : p.grad->rows()) marks[row] = 1;
          const M part = static_cast<M>(ScalarOf(*p.rate) * decay);
          for (int64_t row = 0; row < height; ++row) {
            if (marks[row] != 0) continue;
            for (int64_t k = row * width; k < (row + 1) * width; ++k) {
              T& out = p.param_out->data<T>()[k];
              M next = static_cast<M>(out);
              if (p.master != nullptr) next = p.master_out->data<M>()[k];
              next -= part * next;
              if (p.master != nullptr) p.master_out->data<M>()[k] = next;
              out = static_cast<T>(next);
            }
          }
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindOneAdam(BindContext* context, const Adam& adam,
                                 size_t i, bool lazy) {
  PD_ASSIGN_OR_RETURN(Step step, BindWithPowers(context, adam, i));
  const Tensor* grad = context->Input("Grad", i);
  if (!IsSelectedRows(grad) || adam.decay == 0) return step;
  // Without any row nothing but the decay happens, in lazy mode or not.
  PD_ASSIGN_OR_RETURN(Step decay, DecayOtherRows(context, adam.decay, i));
  return Step([=, step = std::move(step)](const RunContext& run) {
    PD_RETURN_IF_ERROR(step(run));
    return lazy || grad->rows().empty() ? decay(run) : absl::OkStatus();
  });
}

// `otherwise`, unless SkipUpdate is set: then copies.
absl::StatusOr<Step> WithSkip(BindContext* context, Step otherwise) {
  const Tensor* skip = context->Input("SkipUpdate");
  if (skip == nullptr) return otherwise;
  if (skip->dtype() != DType::kBool || skip->size() != 1)
    return InvalidArgument("'SkipUpdate' is %s %s; expected one bool",
                           Name(skip->dtype()), ToString(skip->shape()));
  std::vector<UpdatedState> pairs;
  for (const char* slot :
       {"Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow", "MasterParam"}) {
    for (size_t i = 0; i < context->InputCount(slot); ++i) {
      Tensor* in = context->Input(slot, i);
      Tensor* out = context->Output(std::string(slot) + "Out", i);
      if (in != nullptr && out != nullptr) pairs.push_back({in, out});
    }
  }
  return Step([skip, pairs = std::move(pairs),
               otherwise = std::move(otherwise)](const RunContext& run) {
    if (!*skip->data<bool>()) return otherwise(run);
    for (const UpdatedState& pair : pairs) CopyUnlessSame(pair.in, pair.out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindAdam(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Adam adam, ReadAdam(context, 0));
  PD_RETURN_IF_ERROR(ReadNumber(context, "Beta1Tensor", &adam.beta1));
  PD_RETURN_IF_ERROR(ReadNumber(context, "Beta2Tensor", &adam.beta2));
  PD_RETURN_IF_ERROR(ReadNumber(context, "EpsilonTensor", &adam.epsilon));
  const bool lazy = context->Attr<bool>("lazy_mode");
  if (lazy) adam.sparse = SparseUse::kItsRows;
  if (context->op().type == "adamw" && context->Attr<bool>("with_decay"))
    adam.decay = double{context->Attr<float>("lr_ratio")} *
                 context->Attr<float>("coeff");
  PD_ASSIGN_OR_RETURN(Step step, BindOneAdam(context, adam, 0, lazy));
  return WithSkip(context, std::move(step));
}

absl::StatusOr<Step> BindMergedAdam(BindContext* context) {
  const size_t n = context->InputCount("Param");
  std::vector<float> coeffs(n, 0.0f), ratios(n, 1.0f);
  if (context->op().type == "merged_adamw") {
    coeffs = context->Attr<std::vector<float>>("coeff");
    ratios = context->Attr<std::vector<float>>("lr_ratio");
  }
  if (coeffs.size() != n || ratios.size() != n)
    return InvalidArgument(
        "attrs 'coeff' and 'lr_ratio' hold %d and %d; expected %d",
        coeffs.size(), ratios.size(), n);
  std::vector<Step> steps;
  for (size_t i = 0; i < n; ++i) {
    PD_ASSIGN_OR_RETURN(Adam adam, ReadAdam(context, i));
    adam.decay = double{ratios[i]} * coeffs[i];
    PD_ASSIGN_OR_RETURN(Step step,
                        BindOneAdam(context, adam, i, /*lazy=*/false));
    steps.push_back(std::move(step));
  }
  PD_ASSIGN_OR_RETURN(Step all, UpdateAll(std::move(steps)));
  return WithSkip(context, std::move(all));
}

absl::Status InferAdam(InferContext* context) {
  return InferUpdate(context, {"Param", "Moment1", "Moment2", "Beta1Pow",
                               "Beta2Pow", "MasterParam"});
}

void AddAttrs(OpDef* def) {
  def->Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-8f)
      .Attr("multi_precision", false)
      .Attr("use_global_beta_pow", false);
}

OpDef SingleAdam(const char* type) {
  OpDef def(type);
  def.Input("Param").Input("Grad").Input("LearningRate");
  def.Input("Moment1").Input("Moment2").Input("Beta1Pow").Input("Beta2Pow");
  for (const char* slot : {"MasterParam", "SkipUpdate", "Beta1Tensor",
                           "Beta2Tensor", "EpsilonTensor"})
    def.OptionalInput(slot);
  def.Output("ParamOut").Output("Moment1Out").Output("Moment2Out");
  def.Output("Beta1PowOut").Output("Beta2PowOut");
  def.OptionalOutput("MasterParamOut");
  AddAttrs(&def);
  def.Attr("lazy_mode", false);
  def.Attr("min_row_size_to_use_multithread", int64_t{1000});
  def.Infer(InferAdam).NoGrad().Reference(BindAdam);
  return def;
}

OpDef MergedAdam(const char* type) {
  OpDef merged(type);
  for (const char* slot : {"Param", "Grad", "LearningRate", "Moment1",
                           "Moment2", "Beta1Pow", "Beta2Pow"})
    merged.Inputs(slot);
  merged.OptionalInputs("MasterParam").OptionalInput("SkipUpdate");
  for (const char* slot :
       {"ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"})
    merged.Outputs(slot);
  merged.OptionalOutputs("MasterParamOut");
  AddAttrs(&merged);
  merged.Infer(InferAdam).NoGrad().Reference(BindMergedAdam);
  return merged;
}

}  // namespace

absl::Status RegisterAdam(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(registry->Add(SingleAdam("adam")));

  OpDef adamw = SingleAdam("adamw");
  adamw.Attr("lr_ratio", 1.0f).Attr("coeff", 0.01f).Attr("with_decay", false);
  PD_RETURN_IF_ERROR(registry->Add(std::move(adamw)));

  PD_RETURN_IF_ERROR(registry->Add(MergedAdam("merged_adam")));

  OpDef merged = MergedAdam("merged_adamw");
  merged.RequiredAttr("lr_ratio", AttrType::kFloats);
  merged.RequiredAttr("coeff", AttrType::kFloats);
  return registry->Add(std::move(merged));
}

}  // namespace pd
