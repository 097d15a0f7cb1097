// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/job_newton.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

QuasiNewtonSpec LbfgsOf(const job::LBFGS& lbfgs) {
  QuasiNewtonSpec spec;
  spec.max_iter = lbfgs.max_iter();
  spec.max_eval =
      lbfgs.has_max_eval() ? lbfgs.max_eval() : lbfgs.max_iter() * 5 / 4;
  spec.tolerance_grad = lbfgs.tolerance_grad();
  spec.tolerance_change = lbfgs.tolerance_change();
  spec.history_size = lbfgs.history_size();
  spec.strong_wolfe = lbfgs.line_search_fn() == job::LBFGS::strong_wolfe;
  return spec;
}

QuasiNewtonSpec BfgsOf(const job::BFGS& bfgs) {
  QuasiNewtonSpec spec;
  spec.kind = QuasiNewtonSpec::Kind::kBfgs;
  spec.max_iter = bfgs.max_iters();
  spec.tolerance_grad = bfgs.tolerance_grad();
  spec.tolerance_change = bfgs.tolerance_change();
  spec.max_line_search_iters = bfgs.max_line_search_iters();
  spec.initial_step_length = bfgs.initial_step_length();
  return spec;
}

absl::Status CheckGoesWith(const LoadedJob& job, const char* method) {
  const job::Job& proto = job.proto();
  const job::Optimizer& optimizer = proto.optimizer();
  const auto refused = [&](const char* field) {
    return InvalidArgument(
        "%s finds the length of its steps itself; expected "
        "no '%s' beside it",
        method, field);
  };
  const std::pair<bool, const char*> beside[] = {
      {optimizer.has_lr() && optimizer.has_bfgs(), "lr"},
      {optimizer.has_grad_clip(), "grad_clip"},
      {optimizer.has_weight_decay(), "weight_decay"},
      {optimizer.has_exponential_moving_average(),
       "exponential_moving_average"},
      {optimizer.has_model_average(), "model_average"},
      {optimizer.has_look_ahead(), "look_ahead"},
      {optimizer.has_gradient_merge(), "gradient_merge"}};
  for (const auto& [given, field] : beside)
    if (given) return job.At(refused(field), optimizer, field);
  if (proto.has_amp() && proto.amp().level() != job::Amp::O0)
    return job.At(InvalidArgument("%s compares losses in float32; expected no "
                                  "mixed precision ('amp', --amp)",
                                  method),
                  optimizer);
  if (proto.has_distributed())
    return job.At(Unimplemented("%s evaluates a batch several times in one "
                                "process, without 'distributed'",
                                method),
                  proto.distributed());
  return absl::OkStatus();
}

}  // namespace

bool IsQuasiNewton(const job::Optimizer& optimizer) {
  return optimizer.has_lbfgs() || optimizer.has_bfgs();
}

absl::StatusOr<std::optional<QuasiNewtonSpec>> QuasiNewtonOf(
    const LoadedJob& job) {
  const job::Optimizer& optimizer = job.proto().optimizer();
  if (!IsQuasiNewton(optimizer)) return std::nullopt;
  const bool limited = optimizer.has_lbfgs();
  PD_RETURN_IF_ERROR(CheckGoesWith(job, limited ? "lbfgs" : "bfgs"));
  return limited ? LbfgsOf(optimizer.lbfgs()) : BfgsOf(optimizer.bfgs());
}

absl::Status AddNewton(const OpRegistry& registry, const QuasiNewtonSpec& spec,
                       const std::vector<ParamGrad>& pairs,
                       TrainProgram* program) {
  BlockBuilder main(&registry, &program->main);
  BlockBuilder startup(&registry, &program->startup);
  int64_t elements = 0;
  for (const ParamGrad& pair : pairs) {
    const VarDesc* param = main.FindVar(pair.param);
    const VarDesc* grad = main.FindVar(pair.grad);
    PD_INVARIANT(param != nullptr && grad != nullptr);
    if (grad->kind != VarKind::kLodTensor)
      return Unimplemented(
          "the gradient of '%s' is sparse (selected rows), which a "
          "quasi-Newton method does not take; leave 'sparse' out",
          pair.param);
    if (param->dtype != DType::kFloat32)
      return Unimplemented(
          "parameter '%s' is %s; a quasi-Newton method takes float32 alone",
          pair.param, Name(param->dtype));
    if (pair.learning_rate != 1 || pair.regularizer.has_value())
      return InvalidArgument(
          "parameter '%s' has a learning rate or regularizer of its own, "
          "which a quasi-Newton method does not take",
          pair.param);
    elements += NumElements(param->shape);
  }
  TrainProgram::Newton newton;
  newton.spec = spec;
  if (spec.kind == QuasiNewtonSpec::Kind::kLbfgs) {
    PD_ASSIGN_OR_RETURN(newton.state,
                        AddLbfgsState(spec, elements, &main, &startup));
  } else if (elements > kMostBfgsParameters) {
    return InvalidArgument(
        "bfgs keeps the square of %d parameters; expected at most %d "
        "parameters (lbfgs takes more)",
        elements, kMostBfgsParameters);
  }
  program->newton = std::move(newton);
  return absl::OkStatus();
}

}  // namespace pd
