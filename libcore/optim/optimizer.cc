// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/dgc.h"
#include "libcore/optim/grad_ops.h"

namespace pd {
namespace {

using Kind = OptimizerSpec::Kind;

// A state per parameter.
struct Accumulator {
  const char* slot;
  const char* out;  // null: the update does not write it
  const char* name;
  double fill;
  bool scalar;  // [1]; else of the parameter's shape
};

const char* OpType(Kind kind) {
  switch (kind) {
    case Kind::kSgd:
      return "sgd";
    case Kind::kMomentum:
      return "momentum";
    case Kind::kLarsMomentum:
      return "lars_momentum";
    case Kind::kAdam:
      return "adam";
    case Kind::kAdamW:
      return "adamw";
    case Kind::kAdamax:
      return "adamax";
    case Kind::kAdagrad:
      return "adagrad";
    case Kind::kAdadelta:
      return "adadelta";
    case Kind::kRmsProp:
      return "rmsprop";
    case Kind::kFtrl:
      return "ftrl";
    case Kind::kLamb:
      return "lamb";
    case Kind::kDecayedAdagrad:
      return "decayed_adagrad";
    case Kind::kProximalGd:
      return "proximal_gd";
    case Kind::kProximalAdagrad:
      return "proximal_adagrad";
    case Kind::kDpsgd:
      return "dpsgd";
    case Kind::kDgcMomentum:
      return "dgc_momentum";
  }
  return "";
}

std::vector<Accumulator> AccumulatorsOf(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case Kind::kSgd:
    case Kind::kProximalGd:
    case Kind::kDpsgd:
    case Kind::kDgcMomentum:  // dgc.cc
      return {};
    case Kind::kMomentum:
    case Kind::kLarsMomentum:
      return {{"Velocity", "VelocityOut", "velocity", 0, false}};
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kLamb:
      return {{"Moment1", "Moment1Out", "moment1", 0, false},
              {"Moment2", "Moment2Out", "moment2", 0, false},
              {"Beta1Pow", "Beta1PowOut", "beta1_pow_acc", spec.beta1, true},
              {"Beta2Pow", "Beta2PowOut", "beta2_pow_acc", spec.beta2, true}};
    case Kind::kAdamax:
      return {{"Moment", "MomentOut", "moment", 0, false},
              {"InfNorm", "InfNormOut", "inf_norm", 0, false},
              {"Beta1Pow", nullptr, "beta1_pow_acc", spec.beta1, true}};
    case Kind::kAdagrad:
    case Kind::kDecayedAdagrad:
    case Kind::kProximalAdagrad:
      return {{"Moment", "MomentOut", "moment", spec.initial_accumulator_value,
               false}};
    case Kind::kAdadelta:
      return {{"AvgSquaredGrad", "AvgSquaredGradOut", "_avg_squared_grad", 0,
               false},
              {"AvgSquaredUpdate", "AvgSquaredUpdateOut", "_avg_squared_update",
               0, false}};
    case Kind::kRmsProp:
      return {{"Moment", "MomentOut", "momentum", 0, false},
              {"MeanSquare", "MeanSquareOut", "mean_square", 0, false},
              {"MeanGrad", "MeanGradOut", "mean_grad", 0, false}};
    case Kind::kFtrl:
      return {{"SquaredAccumulator", "SquaredAccumOut", "squared", 0, false},
              {"LinearAccumulator", "LinearAccumOut", "linear", 0, false}};
  }
  return {};
}

bool HasBetas(Kind kind) {
  return kind == Kind::kAdam || kind == Kind::kAdamW || kind == Kind::kAdamax ||
         kind == Kind::kLamb;
}

// Whether the op can keep float32 parameters of its own beside those of 16
// bits.
bool HasMaster(Kind kind) {
  return kind != Kind::kFtrl && kind != Kind::kDecayedAdagrad &&
         kind != Kind::kProximalGd && kind != Kind::kProximalAdagrad &&
         kind != Kind::kDpsgd;
}

bool HasOwnDecay(Kind kind) {
  return kind == Kind::kAdamW || kind == Kind::kLamb;
}

absl::Status CheckSpec(const OptimizerSpec& spec) {
  if (!(spec.learning_rate >= 0))
    return InvalidArgument("'learning_rate' is %g; expected 0 or more",
                           spec.learning_rate);
  if (HasBetas(spec.kind)) {
    if (!(spec.beta1 >= 0 && spec.beta1 < 1))
      return InvalidArgument("'beta1' is %g; expected 0 <= beta1 < 1",
                             spec.beta1);
    if (!(spec.beta2 >= 0 && spec.beta2 < 1))
      return InvalidArgument("'beta2' is %g; expected 0 <= beta2 < 1",
                             spec.beta2);
    if (!(spec.epsilon >= 0))
      return InvalidArgument("'epsilon' is %g; expected 0 or more",
                             spec.epsilon);
  }
  if (HasOwnDecay(spec.kind) &&
      spec.weight_decay.kind != WeightDecay::Kind::kNone)
    return InvalidArgument(
        "%s has a weight decay of its own; expected no other",
        OpType(spec.kind));
  return absl::OkStatus();
}

absl::Status CheckPair(const ParamGrad& pair, const BlockBuilder& main) {
  const VarDesc* param = main.FindVar(pair.param);
  if (param == nullptr)
    return NotFound("parameter '%s' does not exist", pair.param);
  const VarDesc* grad = main.FindVar(pair.grad);
  if (grad == nullptr)
    return NotFound("gradient '%s' of '%s' does not exist", pair.grad,
                    pair.param);
  // Selected rows are some rows of the parameter.
  const bool rows = grad->kind == VarKind::kSelectedRows;
  if ((!rows && param->shape != grad->shape) || param->dtype != grad->dtype)
    return InvalidArgument(
        "parameter '%s' is %s %s; its gradient '%s' is %s "
        "%s",
        pair.param, Name(param->dtype), ToString(param->shape), pair.grad,
        Name(grad->dtype), ToString(grad->shape));
  return absl::OkStatus();
}

// momentum adds l2 decay itself; elsewhere ops do.
bool FusesDecay(const OptimizerSpec& spec, const WeightDecay& decay) {
  return spec.kind == Kind::kMomentum && decay.kind == WeightDecay::Kind::kL2;
}

bool Decays(const OptimizerSpec& spec, const std::string& param) {
  return spec.apply_decay_param_fun == nullptr ||
         spec.apply_decay_param_fun(param);
}

void SetAdamAttrs(const OptimizerSpec& spec, const ParamGrad& pair,
                  OpDesc* op) {
  op->attrs["beta1"] = static_cast<float>(spec.beta1);
  op->attrs["beta2"] = static_cast<float>(spec.beta2);
  op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
  const bool decays = Decays(spec, pair.param);
  if (spec.kind == Kind::kLamb) {
    op->attrs["weight_decay"] = decays ? static_cast<float>(spec.coeff) : 0.0f;
    op->attrs["always_adapt"] = spec.always_adapt;
  }
  if (spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW) {
    op->attrs["lazy_mode"] = spec.lazy_mode;
    op->attrs["min_row_size_to_use_multithread"] = int64_t{1000};
  }
  if (spec.kind == Kind::kAdamW) {
    op->attrs["coeff"] = static_cast<float>(spec.coeff);
    op->attrs["with_decay"] = decays;
    op->attrs["lr_ratio"] = spec.lr_ratio == nullptr
                                ? 1.0f
                                : static_cast<float>(spec.lr_ratio(pair.param));
  }
}

void SetMomentumAttrs(const OptimizerSpec& spec, const ParamGrad& pair,
                      const WeightDecay& decay, OpDesc* op) {
  op->attrs["mu"] = static_cast<float>(spec.momentum);
  op->attrs["rescale_grad"] = static_cast<float>(spec.rescale_grad);
  if (spec.kind == Kind::kLarsMomentum) {
    op->attrs["lars_coeff"] = static_cast<float>(spec.lars_coeff);
    op->attrs["lars_weight_decay"] = std::vector<float>{
        Decays(spec, pair.param) ? static_cast<float>(spec.coeff) : 0.0f};
    op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
    return;
  }
  const bool fused = FusesDecay(spec, decay);
  op->attrs["use_nesterov"] = spec.use_nesterov;
  op->attrs["regularization_method"] = std::string(fused ? "l2_decay" : "");
  op->attrs["regularization_coeff"] =
      fused ? static_cast<float>(decay.coeff) : 0.0f;
}

void SetAttrs(const OptimizerSpec& spec, const ParamGrad& pair,
              const WeightDecay& decay, OpDesc* op) {
  if (HasMaster(spec.kind)) op->attrs["multi_precision"] = false;
  switch (spec.kind) {
    case Kind::kSgd:
      break;
    case Kind::kMomentum:
    case Kind::kLarsMomentum:
      SetMomentumAttrs(spec, pair, decay, op);
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kAdamax:
    case Kind::kLamb:
      SetAdamAttrs(spec, pair, op);
      break;
    case Kind::kRmsProp:
      op->attrs["momentum"] = static_cast<float>(spec.momentum);
      op->attrs["centered"] = spec.centered;
      op->attrs["decay"] = static_cast<float>(spec.rho);
      op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
      break;
    case Kind::kAdadelta:
      op->attrs["rho"] = static_cast<float>(spec.rho);
      op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
      break;
    case Kind::kAdagrad:
      op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
      break;
    case Kind::kFtrl:
      op->attrs["l1"] = static_cast<float>(spec.l1);
      op->attrs["l2"] = static_cast<float>(spec.l2);
      op->attrs["lr_power"] = static_cast<float>(spec.lr_power);
      break;
    case Kind::kDecayedAdagrad:
      op->attrs["decay"] = static_cast<float>(spec.decay);
      op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
      break;
    case Kind::kProximalGd:
    case Kind::kProximalAdagrad:
      op->attrs["l1"] = static_cast<float>(spec.l1);
      op->attrs["l2"] = static_cast<float>(spec.l2);
      break;
    case Kind::kDpsgd:
      op->attrs["clip"] = static_cast<float>(spec.clip);
      op->attrs["batch_size"] = static_cast<float>(spec.batch_size);
      op->attrs["sigma"] = static_cast<float>(spec.sigma);
      break;
    case Kind::kDgcMomentum:
      break;
  }
}

absl::Status AppendUpdate(const OptimizerSpec& spec, const ParamGrad& pair,
                          const WeightDecay& decay, const std::string& rate,
                          const std::vector<std::string>& states,
                          BlockBuilder* main) {
  OpDesc op;
  op.type = OpType(spec.kind);
  op.SetInput("Param", {pair.param});
  op.SetInput("Grad", {pair.grad});
  op.SetInput("LearningRate", {rate});
  const bool adam = spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW;
  if (adam && !spec.skip_update.empty())
    op.SetInput("SkipUpdate", {spec.skip_update});
  op.SetOutput("ParamOut", {pair.param});
  const std::vector<Accumulator> accumulators = AccumulatorsOf(spec);
  for (size_t i = 0; i < accumulators.size(); ++i) {
    op.SetInput(accumulators[i].slot, {states[i]});
    if (accumulators[i].out != nullptr)
      op.SetOutput(accumulators[i].out, {states[i]});
  }
  SetAttrs(spec, pair, decay, &op);
  MarkOptimize(pair, &op);
  return main->Append(std::move(op));
}

// adamax leaves it to an op to move its power of beta1 on.
absl::Status MovePower(const OptimizerSpec& spec, const ParamGrad& pair,
                       const std::string& power, BlockBuilder* main) {
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {power});
  op.SetOutput("Out", {power});
  op.attrs = {{"scale", static_cast<float>(spec.beta1)},
              {"bias", 0.0f},
              {"bias_after_scale", true}};
  MarkOptimize(pair, &op);
  return main->Append(std::move(op));
}

}  // namespace

absl::StatusOr<OptimizerVars> AppendOptimizer(
    const OptimizerSpec& spec, std::vector<ParamGrad> params_grads,
    BlockBuilder* main, BlockBuilder* startup) {
  PD_RETURN_IF_ERROR(CheckSpec(spec));
  if (params_grads.empty())
    return InvalidArgument("no parameter has a gradient; expected one or more");
  std::sort(params_grads.begin(), params_grads.end(),
            [](const auto& a, const auto& b) { return a.param < b.param; });
  for (const ParamGrad& pair : params_grads)
    PD_RETURN_IF_ERROR(CheckPair(pair, *main));

  if (spec.kind == Kind::kDgcMomentum)
    return AppendDgcMomentum(spec, std::move(params_grads), main, startup);
  PD_RETURN_IF_ERROR(AppendGradClip(spec.grad_clip, &params_grads, main));
  const auto decay_of = [&](const ParamGrad& pair) {
    return pair.regularizer.value_or(spec.weight_decay);
  };
  for (ParamGrad& pair : params_grads)
    if (!FusesDecay(spec, decay_of(pair)))
      PD_RETURN_IF_ERROR(AppendWeightDecay(decay_of(pair), &pair, main));

  OptimizerVars vars;
  PD_ASSIGN_OR_RETURN(vars.learning_rate,
                      AddLearningRate(spec.learning_rate, main, startup));
  const std::vector<Accumulator> accumulators = AccumulatorsOf(spec);
  for (const ParamGrad& pair : params_grads) {
    const VarDesc param = *main->FindVar(pair.param);
    for (const Accumulator& a : accumulators) {
      const std::string& stem =
          pair.state_name.empty() ? pair.param : pair.state_name;
      const std::string name =
          UniqueName(absl::StrCat(stem, "_", a.name), *main);
      PD_RETURN_IF_ERROR(AddFilled(name, param.dtype,
                                   a.scalar ? Shape{1} : param.shape, a.fill,
                                   false, main, startup));
      vars.accumulators.push_back(name);
    }
  }
  for (size_t i = 0; i < params_grads.size(); ++i) {
    const ParamGrad& pair = params_grads[i];
    const auto first = vars.accumulators.begin() + i * accumulators.size();
    PD_ASSIGN_OR_RETURN(const std::string rate,
                        RateOf(pair, vars.learning_rate, main));
    PD_RETURN_IF_ERROR(AppendUpdate(
        spec, pair, decay_of(pair), rate,
        {first, first + static_cast<ptrdiff_t>(accumulators.size())}, main));
  }
  if (spec.kind == Kind::kAdamax)
    for (size_t i = 0; i < params_grads.size(); ++i)
      PD_RETURN_IF_ERROR(MovePower(
          spec, params_grads[i],
          vars.accumulators[(i + 1) * accumulators.size() - 1], main));
  return vars;
}

}  // namespace pd
