// SPDX-License-Identifier: Apache-2.0
// A learning rate that rises linearly, then falls with a square:
//   StepOut = s = Step + 1
//   s < warmup_steps: start_lr + (base_lr - start_lr) * s / warmup_steps
//   s < total_steps:  end_lr + (base_lr - end_lr) * f^2, where
//                     f = 1 - (s - warmup_steps) / (total_steps - warmup_steps)
//   else end_lr
#include "libcore/base/status_macros.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindPow2Decay(BindContext* context) {
  Tensor* step = context->Input("Step");
  Tensor* rate_out = context->Output("LearningRateOut");
  Tensor* step_out = context->Output("StepOut");
  PD_RETURN_IF_ERROR(
      CheckScalar("LearningRate", context->Input("LearningRate")));
  if (StateType(rate_out->dtype()) != rate_out->dtype())
    return InvalidArgument("'LearningRate' is %s; expected float32 or float64",
                           Name(rate_out->dtype()));
  if (step->dtype() != DType::kInt64 || step->size() != 1)
    return InvalidArgument("'Step' is %s %s; expected one int64",
                           Name(step->dtype()), ToString(step->shape()));
  const auto warmup = context->Attr<int64_t>("warmup_steps");
  const auto total = context->Attr<int64_t>("total_steps");
  if (warmup < 0 || warmup > total)
    return InvalidArgument(
        "attr 'warmup_steps' is %d; expected one in [0, %d] ('total_steps')",
        warmup, total);
  const float start = context->Attr<float>("start_lr");
  const float base = context->Attr<float>("base_lr");
  const float end = context->Attr<float>("end_lr");
  context->MayShare(step, step_out);
  return Step([=](const RunContext&) {
    const int64_t s = *step->data<int64_t>() + 1;
    double rate = double{end};
    if (s < warmup) {
      rate = double{base - start} * static_cast<double>(s) /
                 static_cast<double>(warmup) +
             start;
    } else if (s < total) {
      const double f = 1 - static_cast<double>(s - warmup) /
                               static_cast<double>(total - warmup);
      rate = double{base - end} * f * f + end;
    }
    SetScalar(rate_out, rate);
    *step_out->data<int64_t>() = s;
    return absl::OkStatus();
  });
}

absl::Status InferPow2Decay(InferContext* context) {
  return InferUpdate(context, {"LearningRate", "Step"});
}

}  // namespace

absl::Status RegisterPow2DecayWithLinearWarmup(OpRegistry* registry) {
  OpDef op("pow2_decay_with_linear_warmup");
  op.Input("LearningRate").Input("Step");
  op.Output("LearningRateOut").Output("StepOut");
  op.RequiredAttr("warmup_steps", AttrType::kLong);
  op.RequiredAttr("total_steps", AttrType::kLong);
  op.Attr("start_lr", 0.0f).RequiredAttr("base_lr", AttrType::kFloat);
  op.RequiredAttr("end_lr", AttrType::kFloat);
  op.Infer(InferPow2Decay).NoGrad().Reference(BindPow2Decay);
  return registry->Add(std::move(op));
}

}  // namespace pd
