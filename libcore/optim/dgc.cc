// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/dgc.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/grad_ops.h"

namespace pd {
namespace {

// Smaller parameters are not worth it.
constexpr int64_t kLeastElements = 16384;

// PaddlePaddle's names.
constexpr char kStepName[] = "__g_dgc_counter__";
constexpr char kRanksName[] = "__g_dgc_nranks__";

absl::Status CheckDgc(const OptimizerSpec& spec) {
  if (spec.grad_clip.kind != GradClip::Kind::kNone &&
      spec.grad_clip.kind != GradClip::Kind::kNorm)
    return InvalidArgument(
        "dgc_momentum selects elements of each gradient by itself; expected a "
        "clip by norm or none");
  if (spec.rampup_begin_step < 0 || spec.rampup_step < 1)
    return InvalidArgument(
        "'rampup_begin_step' is %d and 'rampup_step' %d; expected 0 or more "
        "and 1 or more",
        spec.rampup_begin_step, spec.rampup_step);
  if (spec.sparsity.empty())
    return InvalidArgument("'sparsity' is empty; expected one or more values");
  return absl::OkStatus();
}

bool IsCompressed(const ParamGrad& pair, const BlockBuilder& main) {
  const VarDesc* param = main.FindVar(pair.param);
  return !IsRows(pair.grad, main) && param->dtype == DType::kFloat32 &&
         NumElements(param->shape) >= kLeastElements;
}

class DgcBuilder {
 public:
  DgcBuilder(const OptimizerSpec& spec, BlockBuilder* main,
             BlockBuilder* startup)
      : spec_(spec), main_(main), startup_(startup) {}

  // The step counter is -1 before the first step.
  absl::Status Begin() {
    PD_RETURN_IF_ERROR(
        AddFilled(kStepName, DType::kFloat32, {1}, -1, true, main_, startup_));
    PD_RETURN_IF_ERROR(
        AddFilled(kRanksName, DType::kFloat32, {1}, 1, true, main_, startup_));
    OpDesc op;
    op.type = "increment";
    op.SetInput("X", {kStepName});
    op.SetOutput("Out", {kStepName});
    op.attrs["step"] = 1.0f;
    op.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleOptimize};
    return main_->Append(std::move(op));
  }

  absl::StatusOr<std::string> AddState(const ParamGrad& pair,
                                       const char* name) {
    const VarDesc param = *main_->FindVar(pair.param);
    const std::string& stem =
        pair.state_name.empty() ? pair.param : pair.state_name;
    std::string state = UniqueName(absl::StrCat(stem, "_", name), *main_);
    PD_RETURN_IF_ERROR(
        AddFilled(state, param.dtype, param.shape, 0, false, main_, startup_));
    return state;
  }

  // Leaves the selected elements in the gradient, zeros elsewhere.
  absl::Status Compress(const ParamGrad& pair, const std::string& u,
                        const std::string& v) {
    if (spec_.grad_clip.kind == GradClip::Kind::kNorm && pair.need_clip)
      PD_RETURN_IF_ERROR(
          AppendOptimizeOp(
              "dgc_clip_by_norm",
              {{"X", {pair.grad}}, {"current_step", {kStepName}}},
              {{"max_norm", static_cast<float>(spec_.grad_clip.clip_norm)},
               {"rampup_begin_step", Begins()}},
              pair, main_, pair.grad)
              .status());
    const WeightDecay decay = pair.regularizer.value_or(spec_.weight_decay);
    OpDesc op;
    op.type = "dgc";
    op.SetInput("U", {u});
    op.SetInput("V", {v});
    op.SetInput("Grad", {pair.grad});
    op.SetInput("Param", {pair.param});
    op.SetInput("current_step", {kStepName});
    op.SetInput("nranks", {kRanksName});
    op.SetOutput("U_out", {u});
    op.SetOutput("V_out", {v});
    op.SetOutput("Grad_out", {pair.grad});
    const int32_t kind = decay.kind == WeightDecay::Kind::kL2   ? 2
                         : decay.kind == WeightDecay::Kind::kL1 ? 1
                                                                : 0;
    op.attrs = {{"m", static_cast<float>(spec_.momentum)},
                {"sparsity", spec_.sparsity},
                {"use_nesterov", spec_.use_nesterov},
                {"rampup_begin_step", Begins()},
                {"rampup_step", static_cast<float>(spec_.rampup_step)},
                {"regular_coeff", static_cast<float>(decay.coeff)},
                {"regular_type", kind}};
    MarkOptimize(pair, &op);
    return main_->Append(std::move(op));
  }

  absl::Status Update(const ParamGrad& pair, const std::string& u,
                      const std::string& learning_rate, bool compressed) {
    PD_ASSIGN_OR_RETURN(const std::string rate,
                        RateOf(pair, learning_rate, main_));
    OpDesc op;
    op.type = compressed ? "dgc_momentum" : "momentum";
    op.SetInput("Param", {pair.param});
    op.SetInput("Grad", {pair.grad});
    op.SetInput("Velocity", {u});
    op.SetInput("LearningRate", {rate});
    op.SetOutput("ParamOut", {pair.param});
    op.SetOutput("VelocityOut", {u});
    op.attrs = {{"mu", static_cast<float>(spec_.momentum)},
                {"use_nesterov", spec_.use_nesterov}};
    if (compressed) {
      op.SetInput("current_step", {kStepName});
      op.SetInput("nranks", {kRanksName});
      op.SetOutput("Grad_out", {pair.grad});
      op.attrs["rampup_begin_step"] = Begins();
    }
    MarkOptimize(pair, &op);
    return main_->Append(std::move(op));
  }

 private:
  float Begins() const { return static_cast<float>(spec_.rampup_begin_step); }

  const OptimizerSpec& spec_;
  BlockBuilder* const main_;
  BlockBuilder* const startup_;
};

}  // namespace

absl::StatusOr<OptimizerVars> AppendDgcMomentum(
    const OptimizerSpec& spec, std::vector<ParamGrad> params_grads,
    BlockBuilder* main, BlockBuilder* startup) {
  PD_RETURN_IF_ERROR(CheckDgc(spec));
  DgcBuilder builder(spec, main, startup);
  PD_RETURN_IF_ERROR(builder.Begin());
  OptimizerVars vars;
  PD_ASSIGN_OR_RETURN(vars.learning_rate,
                      AddLearningRate(spec.learning_rate, main, startup));
  for (ParamGrad& pair : params_grads) {
    const bool compressed = IsCompressed(pair, *main);
    PD_ASSIGN_OR_RETURN(const std::string u, builder.AddState(pair, "_dgc_u_"));
    vars.accumulators.push_back(u);
    if (compressed) {
      PD_ASSIGN_OR_RETURN(const std::string v,
                          builder.AddState(pair, "_dgc_v_"));
      vars.accumulators.push_back(v);
      PD_RETURN_IF_ERROR(builder.Compress(pair, u, v));
    } else {
      std::vector<ParamGrad> alone = {pair};
      PD_RETURN_IF_ERROR(AppendGradClip(spec.grad_clip, &alone, main));
      pair = alone[0];
      PD_RETURN_IF_ERROR(AppendWeightDecay(
          pair.regularizer.value_or(spec.weight_decay), &pair, main));
    }
    PD_RETURN_IF_ERROR(builder.Update(pair, u, vars.learning_rate, compressed));
  }
  return vars;
}

}  // namespace pd
