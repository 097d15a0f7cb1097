// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/dry_run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/shard_sum.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/count_flops.h"
#include "libcore/train/data_fit.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/open_data.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/sharded_update.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

// Variables without their initial values, which a plan does not ask for.
absl::Status MakeVariables(const ProgramDesc& program, Session* session) {
  for (const VarDesc& var : program.global().vars)
    if (var.persistable && var.kind == VarKind::kLodTensor)
      PD_RETURN_IF_ERROR(session->scope()
                             .GetOrCreate(var.name, var.dtype, var.shape)
                             .status());
  return absl::OkStatus();
}

// Reads the first record, or, where batches decide their shapes, the first
// batch; of a stream nothing.
absl::StatusOr<DataPlan> LookAtData(const char* set, Loader* loader,
                                    int64_t batch_size) {
  const Dataset& dataset = loader->dataset();
  DataPlan plan;
  plan.records = dataset.size();
  plan.batches = loader->batches();
  plan.batch_size = batch_size;
  plan.fields = loader->fields();
  const bool varies = std::any_of(
      plan.fields.begin(), plan.fields.end(),
      [](const BatchField& field) { return IsDynamic(field.shape); });
  if (loader->is_stream() && varies)
    return InvalidArgument(
        "data.%s: the extents of a batch are known when its program runs, "
        "which a dry run does not start (pad { length: ... } says them)",
        set);
  if (loader->is_stream()) return plan;
  if (plan.batches == 0)
    return InvalidArgument("data.%s: %d records give no batch of %d", set,
                           plan.records, batch_size);
  if (varies) {
    PD_RETURN_IF_ERROR(loader->StartEpoch(0));
    PD_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
    if (batch != nullptr) plan.fields = batch->fields;
  } else {
    Record record;
    PD_RETURN_IF_ERROR(dataset.Read(0, &record));
  }
  return plan;
}

// Adds the memory of a program's plan; gives the number of its operators.
absl::StatusOr<int64_t> PlanMemory(Session* session, const ProgramDesc& program,
                                   const std::vector<FeedSpec>& feeds,
                                   std::vector<std::string> fetches,
                                   const Loader& loader, const char* label,
                                   DataPlan* data) {
  PD_ASSIGN_OR_RETURN(
      PlanCache plans,
      PlanCache::Create(session, &program, feeds, std::move(fetches),
                        loader.fields(), label));
  PD_ASSIGN_OR_RETURN(const Plan* plan, plans.Feed(data->fields));
  data->activation_bytes += plan->stats().arena_bytes;
  data->unshared_bytes += plan->stats().unplanned_bytes;
  return static_cast<int64_t>(plan->steps().size());
}

// A training program, and how often a step runs it.
struct TrainPart {
  std::string name;  // of a phase
  const ProgramDesc* program;
  const std::vector<FeedSpec>* feeds;
  std::string loss;
  int runs = 1;
};

std::vector<TrainPart> PartsOf(const TrainProgram& program) {
  std::vector<TrainPart> parts;
  for (const PhaseProgram& phase : program.phases)
    parts.push_back(
        {phase.name, &phase.main, &phase.feeds, phase.loss, phase.steps});
  if (parts.empty())
    parts.push_back({"", &program.main, &program.feeds, program.loss});
  return parts;
}

// Plans what a step runs, and counts its operations.
absl::Status PlanStep(const OpRegistry& registry, const TrainProgram& program,
                      const Loader& loader, Session* session, DryRun* dry) {
  const int64_t batch = dry->train.batch_size;
  int64_t step_flops = 0;
  bool counted = true;
  for (const TrainPart& part : PartsOf(program)) {
    const DataPlan before = dry->train;
    PD_ASSIGN_OR_RETURN(const int64_t operators,
                        PlanMemory(session, *part.program, *part.feeds,
                                   {part.loss}, loader, "train", &dry->train));
    const FlopCount flops = CountFlops(registry, *part.program);
    counted &= flops.total.has_value();
    step_flops += flops.total.value_or(0) * part.runs * batch;
    if (program.phases.empty()) continue;
    PhasePlan phase{part.name,
                    part.runs,
                    operators,
                    dry->train.activation_bytes - before.activation_bytes,
                    dry->train.unshared_bytes - before.unshared_bytes,
                    {}};
    if (flops.total.has_value()) phase.flops = *flops.total * batch;
    dry->phases.push_back(std::move(phase));
  }
  if (counted) dry->step_flops = step_flops;
  return absl::OkStatus();
}

void CountVariables(const TrainProgram& program, DryRun* dry) {
  absl::flat_hash_set<absl::string_view> trained;
  for (const auto& pair : program.gradients) trained.insert(pair.first);
  for (const VarDesc& var : program.main.global().vars) {
    if (!var.persistable || var.kind != VarKind::kLodTensor) continue;
    const int64_t n = NumElements(var.shape);
    const size_t bytes = static_cast<size_t>(n) * SizeOf(var.dtype);
    (var.is_parameter ? dry->parameter_bytes : dry->state_bytes) += bytes;
    if (!var.is_parameter) continue;
    dry->parameters += n;
    dry->trainable += trained.count(var.name) > 0 ? n : 0;
  }
}

// Bytes by the division of the update over so many processes.
absl::Status AddSharding(const TrainProgram& program,
                         ExchangePlan::Sent* sent) {
  std::vector<std::string> parameters;
  for (const auto& pair : program.gradients) parameters.push_back(pair.first);
  PD_ASSIGN_OR_RETURN(const auto groups,
                      GroupsOf(program.shards->update, parameters));
  const std::vector<int> owners = DivideGroups(groups, sent->processes);
  std::vector<int64_t> own(static_cast<size_t>(sent->processes), 0),
      states = own;
  for (size_t i = 0; i < groups.size(); ++i) {
    own[static_cast<size_t>(owners[i])] +=
        groups[i].bytes - groups[i].state_bytes;
    states[static_cast<size_t>(owners[i])] += groups[i].state_bytes;
  }
  sent->states = *std::max_element(states.begin(), states.end());
  // In stage 2 parameters travel in place of the gradients' sums.
  if (program.shards->stage == 1)
    sent->bytes +=
        *std::max_element(own.begin(), own.end()) * (sent->processes - 1);
  return absl::OkStatus();
}

absl::StatusOr<ExchangePlan> PlanExchange(const TrainProgram& program) {
  const ShardPrograms& shards = *program.shards;
  int64_t numbers = 2;  // the loss, and whether a process has failed
  // How many rows a sparse gradient has depends on the data.
  for (size_t i = 0; i < shards.gradients.size(); ++i)
    if (!shards.rows[i]) numbers += NumElements(shards.gradients[i].shape);
  for (const std::string& name : shards.statistics)
    numbers += NumElements(program.main.global().FindVar(name)->shape);
  ExchangePlan plan;
  plan.shards = shards.shards;
  plan.bytes = static_cast<size_t>(numbers) * sizeof(float);
  const auto add = [&](int64_t processes) {
    const int size = static_cast<int>(processes);
    plan.sent.push_back(
        {size, ShardSum::BytesSent(shards.shards, numbers, size)});
  };
  for (int64_t n = 2; n < shards.shards; n *= 2) add(n);
  if (shards.shards > 1) add(shards.shards);
  if (shards.stage > 0)
    for (ExchangePlan::Sent& sent : plan.sent)
      PD_RETURN_IF_ERROR(AddSharding(program, &sent));
  return plan;
}

}  // namespace

absl::StatusOr<DryRun> RunDry(const OpRegistry& registry, const LoadedJob& job,
                              const PassOptions& passes,
                              const std::vector<InitialParameters>& sources) {
  const job::Data& data = job.proto().data();
  const job::Train& train = job.proto().train();
  PD_ASSIGN_OR_RETURN(TrainProgram program, BuildTrainProgram(registry, job));
  // The threads of both loaders read on while the plans are made.
  RunVocabularies vocabularies;
  PD_ASSIGN_OR_RETURN(
      const auto loader,
      OpenLoader(job, data.train(), train.seed(), &vocabularies));
  std::unique_ptr<Loader> eval_loader;
  if (data.has_eval()) {
    PD_ASSIGN_OR_RETURN(
        eval_loader, OpenLoader(job, data.eval(), train.seed(), &vocabularies));
  }
  PD_RETURN_IF_ERROR(CheckDataFits(job, program, *loader, "train"));
  if (eval_loader != nullptr)
    PD_RETURN_IF_ERROR(CheckDataFits(job, program, *eval_loader, "eval"));
  DryRun dry;
  dry.warnings = WarningsOf(job, program, *loader);
  CountVariables(program, &dry);
  if (program.shards.has_value()) {
    PD_ASSIGN_OR_RETURN(dry.exchange, PlanExchange(program));
  }
  Session session(&registry, train.seed());
  session.set_pass_options(passes);
  PD_RETURN_IF_ERROR(MakeVariables(program.main, &session));
  PD_RETURN_IF_ERROR(SetInitialParameters(
      program, sources, loader->dataset().vocabularies(), &session));
  PD_ASSIGN_OR_RETURN(
      dry.train, LookAtData("train", loader.get(), data.train().batch_size()));
  PD_RETURN_IF_ERROR(PlanStep(registry, program, *loader, &session, &dry));
  if (eval_loader != nullptr) {
    EvaluationSpec spec;
    spec.program = program.test;
    spec.feeds = program.feeds;
    spec.loss = program.loss;
    spec.metrics = program.metrics;
    PD_RETURN_IF_ERROR(
        Evaluator::Create(&session, eval_loader.get(), std::move(spec))
            .status());
    PD_ASSIGN_OR_RETURN(DataPlan eval, LookAtData("eval", eval_loader.get(),
                                                  data.eval().batch_size()));
    std::vector<std::string> fetches = {program.loss};
    for (const MetricUse& use : program.metrics)
      if (std::find(fetches.begin(), fetches.end(), use.prediction) ==
          fetches.end())
        fetches.push_back(use.prediction);
    PD_RETURN_IF_ERROR(PlanMemory(&session, program.test, program.feeds,
                                  std::move(fetches), *eval_loader, "eval",
                                  &eval)
                           .status());
    dry.eval = std::move(eval);
  }
  dry.epochs = train.epochs();
  dry.steps = dry.epochs * (dry.train.batches / program.batches_per_step);
  if (train.steps() > 0)
    dry.steps = dry.train.batches == 0
                    ? train.steps()
                    : std::min<int64_t>(dry.steps, train.steps());
  return dry;
}

}  // namespace pd
