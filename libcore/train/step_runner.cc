// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/exec/nan_check.h"
#include "libcore/train/fetched_number.h"
#include "libcore/train/heads.h"
#include "libcore/train/run_log.h"

namespace pd {
namespace {

std::vector<std::string> NamesOf(const std::vector<FeedSpec>& feeds) {
  std::vector<std::string> names;
  for (const FeedSpec& feed : feeds) names.push_back(feed.name);
  return names;
}

std::set<std::string> LabelsOf(const TrainProgram& program) {
  std::set<std::string> labels;
  for (const FeedSpec& feed : program.feeds)
    if (std::count(program.inputs.begin(), program.inputs.end(), feed.name) ==
        0)
      labels.insert(feed.name);
  return labels;
}

std::string StepName(const StepReport& report) {
  return absl::StrCat("step ", report.step);
}

}  // namespace

StepRunner::StepRunner(StepRunnerOptions options)
    : options_(std::move(options)), program_(*options_.program) {
  if (options_.guard == nullptr) return;
  GuardedPrograms guarded{{&program_.main}, {program_.loss}, {}, nullptr};
  for (const CopyProgram& copy : program_.copies)
    guarded.programs.push_back(&copy.main);
  for (const auto& [parameter, gradient] : program_.gradients)
    guarded.gradients.insert(gradient);
  for (const PhaseProgram& phase : program_.phases) {
    guarded.programs.push_back(&phase.main);
    guarded.losses.insert(phase.loss);
    for (const VarDesc& var : phase.main.global().vars)
      if (var.is_parameter) guarded.gradients.insert(GradName(var.name));
  }
  guarded.layers = &program_.layers;
  options_.guard->Begin(options_.session, std::move(guarded));
}

absl::Status StepRunner::Prepare(uint64_t seed) {
  seed_ = seed;
  PD_RETURN_IF_ERROR(MakePlanCaches());
  PD_RETURN_IF_ERROR(copies_.Compile(program_.copies, options_.session));
  Loader& loader = *options_.loader;
  const auto varies = [](const BatchField& f) { return IsDynamic(f.shape); };
  const std::vector<BatchField>& fields = loader.fields();
  if (!std::any_of(fields.begin(), fields.end(), varies))
    return Compile(fields);
  PD_RETURN_IF_ERROR(loader.StartEpoch(0));
  PD_ASSIGN_OR_RETURN(const Batch* batch, loader.Next());
  if (batch == nullptr) return absl::OkStatus();  // the first epoch says so
  return Compile(batch->fields);
}

absl::Status StepRunner::MakePlanCaches() {
  Loader* const loader = options_.loader;
  if (!program_.phases.empty()) {
    PD_ASSIGN_OR_RETURN(phases_,
                        PhaseRunner::Create(options_.session, &program_, loader,
                                            options_.on_plan));
    if (options_.guard != nullptr)
      phases_->set_guard(options_.guard, LabelsOf(program_));
    return absl::OkStatus();
  }
  Scope& scope = options_.session->scope();
  rate_ = RateTensor(program_.learning_rate, &scope);
  if (!program_.loss_scaling.empty())
    scale_.Begin(*scope.Find(program_.loss_scaling)->tensor.data<float>());
  if (program_.shards.has_value()) {
    PD_ASSIGN_OR_RETURN(shards_,
                        ShardRunner::Create(options_.session, &program_, loader,
                                            options_.on_plan));
    return absl::OkStatus();
  }
  if (program_.newton.has_value()) {
    PD_ASSIGN_OR_RETURN(
        newton_, NewtonRunner::Create(options_.session, &program_, *loader,
                                      options_.on_plan));
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(
      plans_, PlanCache::Create(options_.session, &program_.main,
                                program_.feeds, Fetches(), loader->fields(),
                                "train", options_.on_plan));
  return absl::OkStatus();
}

absl::Status StepRunner::Compile(const std::vector<BatchField>& fields) {
  if (shards_ != nullptr) return shards_->Compile(fields);
  if (newton_ != nullptr) return newton_->Compile(fields);
  return phases_.has_value() ? phases_->Compile(fields)
                             : plans_->Feed(fields).status();
}

std::vector<std::string> StepRunner::Fetches() const {
  std::vector<std::string> fetches = {program_.loss};
  for (const std::string& more : {program_.loss_scaling, program_.own_rate})
    if (!more.empty()) fetches.push_back(more);
  return fetches;
}

// The same steps; gradients stay until the end.
absl::StatusOr<Plan*> StepRunner::FeedForGradients(const Batch& batch) {
  if (!gradient_plans_.has_value()) {
    std::vector<std::string> fetches = Fetches();
    for (const auto& [parameter, gradient] : program_.gradients)
      fetches.push_back(gradient);
    PD_ASSIGN_OR_RETURN(
        gradient_plans_,
        PlanCache::Create(options_.session, &program_.main, program_.feeds,
                          std::move(fetches), options_.loader->fields(),
                          "gradients"));
  }
  return gradient_plans_->Feed(batch.fields);
}

std::vector<ParameterGradient> StepRunner::Gradients() const {
  std::vector<ParameterGradient> gradients;
  if (gradients_ == nullptr) return gradients;
  size_t fetch = Fetches().size();
  for (const auto& [parameter, gradient] : program_.gradients)
    gradients.push_back({parameter, &gradients_->fetch(fetch++)});
  return gradients;
}

absl::Status StepRunner::Run(const Batch& batch, StepPosition at,
                             bool gradients) {
  gradients_ = nullptr;
  batches_done_ = batch.index + 1;
  if (phases_.has_value()) return RunPhases(batch, at);
  if (shards_ != nullptr) return RunShards(batch, at);
  if (newton_ != nullptr) return RunNewton(batch, at);
  // A plan of other shapes may take the memory of the one that runs.
  if (gradients || plans_->Find(batch.fields) != pending_.plan)
    PD_RETURN_IF_ERROR(Complete());
  PD_ASSIGN_OR_RETURN(Plan * plan, gradients ? FeedForGradients(batch)
                                             : plans_->Feed(batch.fields));
  StepReport report{at.step + 1, at.epoch, batch.index + 1,
                    batch.size,  0,        options_.rate(at)};
  report.experience = options_.loader->dataset().experience();
  if (!gradients && options_.guard == nullptr && copies_.empty() &&
      plan->runs_ahead()) {
    // The GPU gets the next step before it has done the last one.
    PD_RETURN_IF_ERROR(
        Annotate(plan->Start(BeginStep(report)), StepName(report)));
    PD_RETURN_IF_ERROR(Complete());
    pending_ = {plan, report};
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(RunPlan(batch, plan, report));
  PD_ASSIGN_OR_RETURN(const float loss,
                      FetchedNumber(program_.loss, plan->fetch(0)));
  if (!std::isfinite(loss) && options_.guard != nullptr)
    return TraceNan(batch, *plan, report,
                    NanFound(BadLossText(report.step, loss)));
  if (gradients) gradients_ = plan;
  return TakeLoss(report, *plan);
}

// An error of a step, which labels of the batch may explain.
absl::Status StepRunner::Explained(const Batch& batch, const StepReport& report,
                                   const absl::Status& status) const {
  return Annotate(ExplainLabels(HeadsOf(program_), batch,
                                options_.loader->dataset(), status),
                  StepName(report));
}

// The phases of a step and what follows them, without a word to the caller.
absl::StatusOr<PhasesDone> StepRunner::DoPhases(const Batch& batch,
                                                const StepReport& report) {
  NanGuard* guard = options_.guard;
  const int64_t step = report.step - 1;
  const auto done = phases_->Run(batch, seed_, step, report.epoch);
  if (guard != nullptr && guard->copied_step() == step) copied_ = report;
  if (IsNanFound(done.status()))
    return Annotate(done.status(), StepName(report));
  if (!done.ok()) return Explained(batch, report, done.status());
  PD_RETURN_IF_ERROR(Annotate(copies_.Run(report.step), StepName(report)));
  if (guard != nullptr) guard->AfterStep(step, phases_->plans());
  return done;
}

absl::Status StepRunner::RunPhases(const Batch& batch, StepPosition at) {
  StepReport report{at.step + 1, at.epoch, batch.index + 1,
                    0,           0,        options_.rate(at)};
  const auto done = DoPhases(batch, report);
  absl::Status status = done.status();
  if (done.ok()) {
    report.batch = batches_done_ = done->batch;
    report.records = done->records;
    report.loss = done->loss;
    report.phases = &phases_->reports();
    report.experience = options_.loader->dataset().experience();
    if (std::isfinite(report.loss)) return options_.on_step(report);
    std::string text = BadLossText(report.step, report.loss);
    for (const PhaseReport& phase : phases_->reports())
      if (!std::isfinite(phase.loss)) {
        text = absl::StrCat("phase '", phase.name,
                            "': ", BadLossText(report.step, phase.loss));
        break;
      }
    if (options_.guard == nullptr) return FailedPrecondition("%s", text);
    status = NanFound(text);
  }
  if (!IsNanFound(status) || options_.guard->finding().has_value())
    return status;
  options_.guard->Rewind();
  PD_RETURN_IF_ERROR(Repeat(report.step));
  return status;  // it does not come again
}

absl::Status StepRunner::RunShards(const Batch& batch, StepPosition at) {
  StepReport report{at.step + 1, at.epoch, batch.index + 1,
                    batch.whole, 0,        options_.rate(at)};
  BeginStep(report);
  const auto loss = shards_->Run(batch, seed_, at.step);
  if (!loss.ok()) return Explained(batch, report, loss.status());
  PD_RETURN_IF_ERROR(Annotate(copies_.Run(report.step), StepName(report)));
  report.loss = *loss;
  if (!program_.loss_scaling.empty()) {
    const auto* scale = options_.session->scope().Find(program_.loss_scaling);
    scale_.AfterStep(report.step, *scale->tensor.data<float>());
  }
  if (!std::isfinite(report.loss))
    return FailedPrecondition("%s", BadLossText(report.step, report.loss));
  return options_.on_step(report);
}

absl::Status StepRunner::RunNewton(const Batch& batch, StepPosition at) {
  StepReport report{at.step + 1, at.epoch, batch.index + 1,
                    batch.size,  0,        options_.rate(at)};
  report.experience = options_.loader->dataset().experience();
  const auto loss =
      newton_->Run(batch, BeginStep(report), report.learning_rate);
  if (!loss.ok()) return Explained(batch, report, loss.status());
  PD_RETURN_IF_ERROR(Annotate(copies_.Run(report.step), StepName(report)));
  report.loss = *loss;
  if (!std::isfinite(report.loss))
    return FailedPrecondition("%s", BadLossText(report.step, report.loss));
  return options_.on_step(report);
}

RunContext StepRunner::BeginStep(const StepReport& report) {
  if (rate_ != nullptr)
    *rate_->data<float>() = static_cast<float>(report.learning_rate);
  RunContext context;
  context.seed = seed_;
  context.step = static_cast<uint64_t>(report.step - 1);
  return context;
}

absl::Status StepRunner::RunPlan(const Batch& batch, Plan* plan,
                                 const StepReport& report) {
  NanGuard* guard = options_.guard;
  const int64_t step = report.step - 1;
  if (guard != nullptr && guard->BeforeStep(step, {plan})) copied_ = report;
  const RunContext context = BeginStep(report);
  std::unique_ptr<StepHook> hook;
  if (guard != nullptr) hook = guard->HookFor(*plan, step);
  absl::Status status = plan->Run(context, hook.get());
  if (!status.ok() && !IsNanFound(status))
    status = ExplainLabels(HeadsOf(program_), batch, options_.loader->dataset(),
                           status);
  if (status.ok()) status = copies_.Run(report.step);
  status = Annotate(status, StepName(report));
  if (guard == nullptr) return status;
  if (IsNanFound(status)) return TraceNan(batch, *plan, report, status);
  if (status.ok()) guard->AfterStep(step, {plan});
  return status;
}

// Goes back to where the guard has copies of the variables, repeats the steps
// from there, and has the first bad one explained.
absl::Status StepRunner::TraceNan(const Batch& batch, const Plan& plan,
                                  const StepReport& report,
                                  const absl::Status& found) {
  NanGuard* guard = options_.guard;
  const int64_t step = report.step - 1;
  if (guard->copied_step() != step) {
    guard->Rewind();
    PD_RETURN_IF_ERROR(Repeat(report.step));
    return found;  // it does not come again
  }
  NanQuery query = QueryOf(plan, NamesOf(program_.feeds));
  query.program = &program_.main;
  query.fetches = Fetches();
  query.labels = LabelsOf(program_);
  query.context.seed = seed_;
  query.context.step = static_cast<uint64_t>(step);
  query.place = {"train",          "",           report.step,
                 report.epoch + 1, report.batch, batch.records};
  guard->Rewind();
  PD_RETURN_IF_ERROR(guard->Explain(plan, std::move(query)));
  return found;
}

// The steps from the guard's copies to `last`, all of one epoch: the guard
// forgets its copies at an epoch's end.
absl::Status StepRunner::Repeat(int64_t last) {
  Loader& loader = *options_.loader;
  StepReport report = copied_;
  PD_RETURN_IF_ERROR(loader.StartEpoch(report.epoch, report.batch - 1));
  for (; report.step <= last; ++report.step) {
    PD_ASSIGN_OR_RETURN(const Batch* again, loader.Next());
    if (again == nullptr) break;
    report.batch = again->index + 1;
    report.records = again->size;
    report.learning_rate = options_.rate({report.step - 1, report.epoch});
    if (phases_.has_value()) {
      PD_RETURN_IF_ERROR(DoPhases(*again, report).status());
      continue;
    }
    PD_ASSIGN_OR_RETURN(Plan * same, plans_->Feed(again->fields));
    PD_RETURN_IF_ERROR(RunPlan(*again, same, report));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::TakeLoss(StepReport report, const Plan& plan) {
  PD_ASSIGN_OR_RETURN(report.loss, FetchedNumber(program_.loss, plan.fetch(0)));
  if (!program_.loss_scaling.empty())
    scale_.AfterStep(report.step, *plan.fetch(1).data<float>());
  if (!program_.own_rate.empty()) {
    const size_t place = program_.loss_scaling.empty() ? 1 : 2;
    PD_ASSIGN_OR_RETURN(report.learning_rate,
                        FetchedNumber(program_.own_rate, plan.fetch(place)));
  }
  if (!std::isfinite(report.loss))
    return FailedPrecondition("%s", BadLossText(report.step, report.loss));
  return options_.on_step(report);
}

absl::Status StepRunner::Complete() {
  Plan* const plan = std::exchange(pending_.plan, nullptr);
  if (plan == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Annotate(plan->Wait(), StepName(pending_.report)));
  return TakeLoss(pending_.report, *plan);
}

void StepRunner::ForgetCopies() {
  if (options_.guard != nullptr) options_.guard->Forget();
}

}  // namespace pd
