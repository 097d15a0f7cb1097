// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/newton_runner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/fetched_number.h"

namespace pd {

absl::StatusOr<std::unique_ptr<NewtonRunner>> NewtonRunner::Create(
    Session* session, const TrainProgram* program, const Loader& loader,
    const std::function<void(int64_t, const Plan&)>& on_plan) {
  PD_INVARIANT(program->newton.has_value());
  std::unique_ptr<NewtonRunner> runner(new NewtonRunner(session, program));
  std::vector<std::string> fetches = {program->loss};
  for (const auto& [parameter, gradient] : program->gradients) {
    fetches.push_back(gradient);
    PD_ASSIGN_OR_RETURN(const Array first, session->scope().Get(parameter));
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(Array value,
                        NewArray(first.dtype, first.shape, &bytes));
    runner->parameters_.push_back(
        {parameter, std::move(value), reinterpret_cast<float*>(bytes)});
  }
  PD_ASSIGN_OR_RETURN(
      PlanCache plans,
      PlanCache::Create(session, &program->main, program->feeds,
                        std::move(fetches), loader.fields(), "train", on_plan));
  runner->plans_ = std::make_unique<PlanCache>(std::move(plans));
  return runner;
}

absl::Status NewtonRunner::Compile(const std::vector<BatchField>& fields) {
  return plans_->Feed(fields).status();
}

absl::Status NewtonRunner::SetParameters(const std::vector<float>& x) {
  const float* from = x.data();
  for (Parameter& parameter : parameters_) {
    const int64_t size = parameter.value.size();
    std::copy_n(from, size, parameter.data);
    from += size;
    PD_RETURN_IF_ERROR(session_->scope().Set(parameter.name, parameter.value));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> NewtonRunner::Evaluate(const Batch& batch,
                                              const RunContext& context,
                                              const std::vector<float>& x,
                                              std::vector<float>* gradient) {
  PD_RETURN_IF_ERROR(SetParameters(x));
  PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(batch.fields));
  PD_RETURN_IF_ERROR(plan->Run(context));
  gradient->clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& part = plan->fetch(i + 1);
    PD_INVARIANT(part.size() == parameters_[i].value.size());
    gradient->insert(gradient->end(), part.data<float>(),
                     part.data<float>() + part.size());
  }
  return FetchedNumber(program_.loss, plan->fetch(0));
}

absl::StatusOr<LbfgsState> NewtonRunner::State() {
  std::vector<Tensor*> parts;
  for (const std::string& name : program_.newton->state) {
    Scope::Entry* entry = session_->scope().Find(name);
    PD_INVARIANT(entry != nullptr && entry->tensor.has_value());
    parts.push_back(&entry->tensor);
  }
  PD_INVARIANT(parts.size() == 5);
  return LbfgsState{parts[0]->data<float>(), parts[1]->data<float>(),
                    parts[2]->data<float>(), parts[3]->data<float>(),
                    parts[4]->data<double>()};
}

absl::StatusOr<float> NewtonRunner::Run(const Batch& batch,
                                        const RunContext& context,
                                        double learning_rate) {
  std::vector<float> x;
  for (const Parameter& parameter : parameters_) {
    PD_ASSIGN_OR_RETURN(const Array value,
                        session_->scope().Get(parameter.name));
    x.insert(x.end(), value.data<float>(), value.data<float>() + value.size());
  }
  const Objective objective = [&](const std::vector<float>& at,
                                  std::vector<float>* gradient) {
    return Evaluate(batch, context, at, gradient);
  };
  const QuasiNewtonSpec& spec = program_.newton->spec;
  double loss = 0;
  if (spec.kind == QuasiNewtonSpec::Kind::kLbfgs) {
    PD_ASSIGN_OR_RETURN(const LbfgsState state, State());
    PD_ASSIGN_OR_RETURN(loss,
                        LbfgsStep(spec, learning_rate, objective, state, &x));
  } else {
    PD_ASSIGN_OR_RETURN(loss, BfgsStep(spec, objective, &x));
  }
  // The last evaluation may have been elsewhere.
  PD_RETURN_IF_ERROR(SetParameters(x));
  return static_cast<float>(loss);
}

}  // namespace pd
