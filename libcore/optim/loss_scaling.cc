// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/loss_scaling.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/grad_ops.h"

namespace pd {
namespace {

absl::Status CheckSpec(const LossScalingSpec& spec) {
  if (!(spec.init_loss_scaling > 0))
    return InvalidArgument("'init_loss_scaling' is %g; expected more than 0",
                           spec.init_loss_scaling);
  if (!spec.use_dynamic_loss_scaling) return absl::OkStatus();
  if (!(spec.incr_ratio > 1))
    return InvalidArgument("'incr_ratio' is %g; expected more than 1",
                           spec.incr_ratio);
  if (!(spec.decr_ratio > 0 && spec.decr_ratio < 1))
    return InvalidArgument("'decr_ratio' is %g; expected 0 < decr_ratio < 1",
                           spec.decr_ratio);
  if (spec.incr_every_n_steps < 1 || spec.decr_every_n_nan_or_inf < 1)
    return InvalidArgument(
        "'incr_every_n_steps' is %d and 'decr_every_n_nan_or_inf' %d; expected "
        "1 or more",
        spec.incr_every_n_steps, spec.decr_every_n_nan_or_inf);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LossScalingVars> ScaleLoss(const LossScalingSpec& spec,
                                          BlockBuilder* main,
                                          BlockBuilder* startup,
                                          std::string* loss) {
  PD_RETURN_IF_ERROR(CheckSpec(spec));
  LossScalingVars vars;
  vars.scale = UniqueName("loss_scaling", *main);
  PD_RETURN_IF_ERROR(AddFilled(vars.scale, DType::kFloat32, {1},
                               spec.init_loss_scaling, true, main, startup));
  if (spec.use_dynamic_loss_scaling) {
    vars.good_steps = UniqueName("num_good_steps", *main);
    vars.bad_steps = UniqueName("num_bad_steps", *main);
    for (const std::string& name : {vars.good_steps, vars.bad_steps})
      PD_RETURN_IF_ERROR(
          AddFilled(name, DType::kInt32, {1}, 0, true, main, startup));
  }
  OpDesc op;
  op.type = "elementwise_mul";
  op.SetInput("X", {*loss});
  op.SetInput("Y", {vars.scale});
  *loss = main->UniqueTemporary("elementwise_mul");
  op.SetOutput("Out", {*loss});
  op.attrs["axis"] = int32_t{-1};
  op.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleForward | kRoleLoss};
  PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  return vars;
}

absl::StatusOr<std::string> UnscaleGradients(
    const LossScalingSpec& spec, const LossScalingVars& vars,
    const std::vector<ParamGrad>& params_grads, BlockBuilder* main) {
  std::vector<std::string> grads;
  for (const ParamGrad& pair : params_grads) grads.push_back(pair.grad);
  const std::string found = main->UniqueTemporary("find_infinite_scale");
  OpDesc unscale;
  unscale.type = "check_finite_and_unscale";
  unscale.SetInput("X", grads);
  unscale.SetInput("Scale", {vars.scale});
  unscale.SetOutput("Out", grads);
  unscale.SetOutput("FoundInfinite", {found});
  unscale.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleOptimize};
  PD_RETURN_IF_ERROR(main->Append(std::move(unscale)));
  if (!spec.use_dynamic_loss_scaling) return found;
  OpDesc update;
  update.type = "update_loss_scaling";
  update.SetInput("X", grads);
  update.SetInput("FoundInfinite", {found});
  update.SetInput("PrevLossScaling", {vars.scale});
  update.SetInput("InGoodSteps", {vars.good_steps});
  update.SetInput("InBadSteps", {vars.bad_steps});
  update.SetOutput("Out", std::move(grads));
  update.SetOutput("LossScaling", {vars.scale});
  update.SetOutput("OutGoodSteps", {vars.good_steps});
  update.SetOutput("OutBadSteps", {vars.bad_steps});
  update.attrs = {{"incr_every_n_steps", spec.incr_every_n_steps},
                  {"decr_every_n_nan_or_inf", spec.decr_every_n_nan_or_inf},
                  {"incr_ratio", static_cast<float>(spec.incr_ratio)},
                  {"decr_ratio", static_cast<float>(spec.decr_ratio)},
                  {"stop_update", false},
                  {std::string(kOpRoleAttr), int32_t{kRoleOptimize}}};
  PD_RETURN_IF_ERROR(main->Append(std::move(update)));
  return found;
}

}  // namespace pd
