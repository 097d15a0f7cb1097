// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/phase_runner.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"

namespace pd {
namespace {

// The phase as messages and the labels of plans call it.
std::string CalledPhase(const PhaseProgram& phase) {
  return absl::StrCat("phase '", phase.name, "'");
}

}  // namespace

absl::StatusOr<PhaseRunner> PhaseRunner::Create(
    Session* session, const TrainProgram* program, Loader* loader,
    const std::function<void(int64_t, const Plan&)>& on_plan) {
  PhaseRunner runner;
  runner.loader_ = loader;
  for (const PhaseProgram& phase : program->phases) {
    std::vector<std::string> fetches = {phase.loss};
    ScaleWatch scale(absl::StrCat(", ", CalledPhase(phase)));
    if (!phase.loss_scaling.empty()) {
      fetches.push_back(phase.loss_scaling);
      const Scope::Entry* factor = session->scope().Find(phase.loss_scaling);
      PD_INVARIANT(factor != nullptr);
      scale.Begin(*factor->tensor.data<float>());
    }
    PD_ASSIGN_OR_RETURN(
        PlanCache plans,
        PlanCache::Create(session, &phase.main, phase.feeds, std::move(fetches),
                          loader->fields(), absl::StrCat("train ", phase.name),
                          on_plan));
    runner.parts_.push_back({&phase, std::move(plans),
                             RateTensor(phase.learning_rate, &session->scope()),
                             std::move(scale)});
    runner.runs_per_step_ += phase.steps;
  }
  runner.reports_.reserve(runner.parts_.size());
  runner.ran_.reserve(static_cast<size_t>(runner.runs_per_step_));
  return runner;
}

absl::Status PhaseRunner::Compile(const std::vector<BatchField>& fields) {
  for (Part& part : parts_)
    PD_RETURN_IF_ERROR(
        Annotate(part.plans.Feed(fields).status(), CalledPhase(*part.phase)));
  return absl::OkStatus();
}

absl::Status PhaseRunner::RunPlan(const Part& part, const Batch& batch,
                                  const RunContext& context, int64_t step,
                                  int64_t epoch, Plan* plan) {
  StepHook* hook = hooks_ != nullptr ? hooks_(*plan) : nullptr;
  if (guard_ == nullptr) return plan->Run(context, hook);
  const int64_t run =
      static_cast<int64_t>(context.step) - step * runs_per_step_;
  guard_->BeforeStep(step, {plan}, run);
  const std::unique_ptr<StepHook> looks = guard_->HookFor(*plan, step);
  const absl::Status status = plan->Run(context, looks.get());
  if (!IsNanFound(status) || !guard_->HasCopiesOf(step, run)) return status;
  const PhaseProgram& phase = *part.phase;
  std::vector<std::string> names;
  for (const FeedSpec& feed : phase.feeds) names.push_back(feed.name);
  NanQuery query = QueryOf(*plan, names);
  query.program = &phase.main;
  query.fetches = {phase.loss};
  query.labels = labels_;
  query.context = context;
  query.place = {"train",   phase.name,      step + 1,
                 epoch + 1, batch.index + 1, batch.records};
  guard_->Rewind();
  PD_RETURN_IF_ERROR(guard_->Explain(*plan, std::move(query)));
  return status;
}

absl::StatusOr<PhasesDone> PhaseRunner::Run(const Batch& batch, uint64_t seed,
                                            int64_t step, int64_t epoch) {
  const Batch* at = &batch;
  PhasesDone done{batch.index + 1, batch.size, 0};
  reports_.clear();
  ran_.clear();
  RunContext context;
  context.seed = seed;
  context.step = static_cast<uint64_t>(step * runs_per_step_);
  const uint64_t first = context.step;
  for (Part& part : parts_) {
    const PhaseProgram& phase = *part.phase;
    const double rate = phase.rate(step, epoch);
    *part.rate->data<float>() = static_cast<float>(rate);
    double sum = 0;
    for (int run = 0; run < phase.steps; ++run, ++context.step) {
      if (phase.new_batch && context.step != first) {
        PD_ASSIGN_OR_RETURN(at, loader_->Next());
        if (at == nullptr) return done;
        done.batch = at->index + 1;
        done.records += at->size;
      }
      PD_ASSIGN_OR_RETURN(Plan * plan, part.plans.Feed(at->fields));
      PD_RETURN_IF_ERROR(Annotate(
          RunPlan(part, *at, context, step, epoch, plan), CalledPhase(phase)));
      ran_.push_back(plan);
      sum += static_cast<double>(*plan->fetch(0).data<float>());
      if (!phase.loss_scaling.empty())
        part.scale.AfterStep(step + 1, *plan->fetch(1).data<float>());
    }
    const auto mean = static_cast<float>(sum / phase.steps);
    reports_.push_back({phase.name, mean, rate});
    done.loss += mean;
  }
  return done;
}

}  // namespace pd
