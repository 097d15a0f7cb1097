// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/optimizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/grad_ops.h"

namespace pd {
namespace {

using Kind = OptimizerSpec::Kind;

// From this version on PaddlePaddle's learning rate has shape [] instead of
// [1].
constexpr int64_t kScalarsVersion = 2005000;

// A state per parameter: slot S is read, slot S + "Out" is written.
struct Accumulator {
  const char* slot;
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
    case Kind::kAdam:
      return "adam";
    case Kind::kAdamW:
      return "adamw";
  }
  return "";
}

std::vector<Accumulator> AccumulatorsOf(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case Kind::kSgd:
      return {};
    case Kind::kMomentum:
      return {{"Velocity", "velocity", 0, false}};
    case Kind::kAdam:
    case Kind::kAdamW:
      return {{"Moment1", "moment1", 0, false},
              {"Moment2", "moment2", 0, false},
              {"Beta1Pow", "beta1_pow_acc", spec.beta1, true},
              {"Beta2Pow", "beta2_pow_acc", spec.beta2, true}};
  }
  return {};
}

absl::Status CheckSpec(const OptimizerSpec& spec) {
  if (!(spec.learning_rate >= 0))
    return InvalidArgument("'learning_rate' is %g; expected 0 or more",
                           spec.learning_rate);
  if (spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW) {
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
  if (spec.kind == Kind::kAdamW &&
      spec.weight_decay.kind != WeightDecay::Kind::kNone)
    return InvalidArgument(
        "adamw has a weight decay of its own; expected no "
        "other");
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
  if (param->shape != grad->shape || param->dtype != grad->dtype)
    return InvalidArgument(
        "parameter '%s' is %s %s; its gradient '%s' is %s "
        "%s",
        pair.param, Name(param->dtype), ToString(param->shape), pair.grad,
        Name(grad->dtype), ToString(grad->shape));
  return absl::OkStatus();
}

// As Python prints it: the shortest digits that give the number back.
std::string Repr(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  std::string digits(text, end);
  if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
  return digits;
}

// Declares a persistable in both programs; the startup program fills it.
absl::Status AddFilled(const std::string& name, DType dtype, const Shape& shape,
                       double fill, bool stop_gradient, BlockBuilder* main,
                       BlockBuilder* startup) {
  VarDesc var;
  var.name = name;
  var.dtype = dtype;
  var.shape = shape;
  var.persistable = true;
  var.stop_gradient = stop_gradient;
  main->AddVar(var);
  var.stop_gradient = true;
  startup->AddVar(std::move(var));
  OpDesc op;
  op.type = "fill_constant";
  op.SetOutput("Out", {name});
  op.attrs = {{"shape", shape},
              {"dtype", static_cast<int32_t>(dtype)},
              {"value", static_cast<float>(fill)},
              {"str_value", Repr(fill)}};
  return startup->Append(std::move(op));
}

// "learning_rate" -> "learning_rate_0", or the next number that is free.
std::string UniqueName(const std::string& stem, const BlockBuilder& main) {
  int number = 0;
  std::string name;
  do {
    name = absl::StrCat(stem, "_", number++);
  } while (main.FindVar(name) != nullptr);
  return name;
}

// The variable with a parameter's own learning rate.
absl::StatusOr<std::string> RateOf(const ParamGrad& pair,
                                   const std::string& learning_rate,
                                   BlockBuilder* main) {
  if (pair.learning_rate == 1) return learning_rate;
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {learning_rate});
  const std::string out = main->UniqueTemporary("scale");
  op.SetOutput("Out", {out});
  op.attrs = {{"scale", static_cast<float>(pair.learning_rate)},
              {"bias", 0.0f},
              {"bias_after_scale", true}};
  MarkOptimize(pair, &op);
  op.attrs[std::string(kOpRoleAttr)] = kRoleOptimize | kRoleLRSched;
  PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  return out;
}

// momentum adds l2 decay itself; elsewhere ops do.
bool FusesDecay(const OptimizerSpec& spec, const WeightDecay& decay) {
  return spec.kind == Kind::kMomentum && decay.kind == WeightDecay::Kind::kL2;
}

void SetAttrs(const OptimizerSpec& spec, const ParamGrad& pair,
              const WeightDecay& decay, OpDesc* op) {
  op->attrs["multi_precision"] = false;
  if (spec.kind == Kind::kMomentum) {
    const bool fused = FusesDecay(spec, decay);
    op->attrs["mu"] = static_cast<float>(spec.momentum);
    op->attrs["use_nesterov"] = spec.use_nesterov;
    op->attrs["rescale_grad"] = static_cast<float>(spec.rescale_grad);
    op->attrs["regularization_method"] = std::string(fused ? "l2_decay" : "");
    op->attrs["regularization_coeff"] =
        fused ? static_cast<float>(decay.coeff) : 0.0f;
  }
  if (spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW) {
    op->attrs["beta1"] = static_cast<float>(spec.beta1);
    op->attrs["beta2"] = static_cast<float>(spec.beta2);
    op->attrs["epsilon"] = static_cast<float>(spec.epsilon);
    op->attrs["lazy_mode"] = spec.lazy_mode;
    op->attrs["min_row_size_to_use_multithread"] = int64_t{1000};
  }
  if (spec.kind == Kind::kAdamW) {
    op->attrs["coeff"] = static_cast<float>(spec.coeff);
    op->attrs["with_decay"] = spec.apply_decay_param_fun == nullptr ||
                              spec.apply_decay_param_fun(pair.param);
    op->attrs["lr_ratio"] = spec.lr_ratio == nullptr
                                ? 1.0f
                                : static_cast<float>(spec.lr_ratio(pair.param));
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
  op.SetOutput("ParamOut", {pair.param});
  const std::vector<Accumulator> accumulators = AccumulatorsOf(spec);
  for (size_t i = 0; i < accumulators.size(); ++i) {
    op.SetInput(accumulators[i].slot, {states[i]});
    op.SetOutput(absl::StrCat(accumulators[i].slot, "Out"), {states[i]});
  }
  SetAttrs(spec, pair, decay, &op);
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

  PD_RETURN_IF_ERROR(AppendGradClip(spec.grad_clip, &params_grads, main));
  const auto decay_of = [&](const ParamGrad& pair) {
    return pair.regularizer.value_or(spec.weight_decay);
  };
  for (const ParamGrad& pair : params_grads)
    if (!FusesDecay(spec, decay_of(pair)))
      PD_RETURN_IF_ERROR(AppendWeightDecay(decay_of(pair), pair, main));

  OptimizerVars vars;
  vars.learning_rate = UniqueName("learning_rate", *main);
  const bool scalars = main->program()->version >= kScalarsVersion;
  PD_RETURN_IF_ERROR(AddFilled(vars.learning_rate, DType::kFloat32,
                               scalars ? Shape{} : Shape{1}, spec.learning_rate,
                               true, main, startup));
  const std::vector<Accumulator> accumulators = AccumulatorsOf(spec);
  for (const ParamGrad& pair : params_grads) {
    const VarDesc param = *main->FindVar(pair.param);
    for (const Accumulator& a : accumulators) {
      const std::string name =
          UniqueName(absl::StrCat(pair.param, "_", a.name), *main);
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
  return vars;
}

}  // namespace pd
