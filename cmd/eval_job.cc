// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_job.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/progress.h"
#include "cmd/common/requirement.h"
#include "cmd/eval_report.h"
#include "cmd/eval_run.h"
#include "cmd/eval_text.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/metric_results.h"
#include "libcore/program/prune.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/nan_guard.h"
#include "libcore/train/open_data.h"
#include "libcore/train/run_log.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

// Puts the ops that make the loss from predictions behind an inference model:
// its outputs take the place of the job's, other names get a prefix.
absl::Status AppendLoss(const TrainProgram& job, const LoadedModel& model,
                        EvaluationSpec* spec) {
  std::vector<std::string> given = job.outputs;
  for (const FeedSpec& feed : job.feeds) given.push_back(feed.name);
  PD_ASSIGN_OR_RETURN(const ProgramDesc loss,
                      Prune(job.test, given, {job.loss}));
  std::map<std::string, std::string> names;
  for (const FeedSpec& feed : job.feeds) names[feed.name] = feed.name;
  for (size_t i = 0; i < job.outputs.size(); ++i)
    names[job.outputs[i]] = model.fetches[i];
  const auto renamed = [&](const std::string& name) {
    const auto it = names.find(name);
    return it != names.end() ? it->second : absl::StrCat("loss/", name);
  };
  BlockDesc& block = spec->program.global();
  for (VarDesc var : loss.global().vars) {
    var.name = renamed(var.name);
    if (block.FindVar(var.name) == nullptr)
      block.vars.push_back(std::move(var));
  }
  for (OpDesc op : loss.global().ops) {
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& [slot, variables] : *slots)
        for (std::string& variable : variables)
          if (variable != kEmptyVar) variable = renamed(variable);
    block.ops.push_back(std::move(op));
  }
  spec->loss = renamed(job.loss);
  return absl::OkStatus();
}

// An inference model with the job's loss and metrics.
absl::StatusOr<EvaluationSpec> SpecOfModel(const TrainProgram& job,
                                           const LoadedModel& model) {
  if (model.fetches.size() != job.outputs.size())
    return InvalidArgument("'%s' has %d outputs; the job's model has %d",
                           model.path, model.fetches.size(),
                           job.outputs.size());
  EvaluationSpec spec;
  spec.program = model.program;
  spec.outputs = model.fetches;
  for (const std::string& name : model.feeds) {
    const auto feed =
        std::find_if(job.feeds.begin(), job.feeds.end(),
                     [&](const FeedSpec& f) { return f.name == name; });
    if (feed == job.feeds.end())
      return InvalidArgument("'%s' is fed '%s'; the job has no such input",
                             model.path, name);
  }
  spec.feeds = job.feeds;
  for (MetricUse use : job.metrics) {
    std::vector<std::string*> names = {&use.prediction};
    for (MetricUse::More& more : use.more)
      if (more.variable) names.push_back(&more.name);
    for (std::string* name : names) {
      const auto at = std::find(job.outputs.begin(), job.outputs.end(), *name);
      if (at == job.outputs.end())
        return InvalidArgument(
            "metric '%s' looks at '%s', which is no output of '%s'", use.name,
            *name, model.path);
      *name = model.fetches[static_cast<size_t>(at - job.outputs.begin())];
    }
    spec.metrics.push_back(std::move(use));
  }
  if (!job.loss.empty()) PD_RETURN_IF_ERROR(AppendLoss(job, model, &spec));
  return spec;
}

// The job's own network, with the values of a run or program.
EvaluationSpec SpecOfJob(const TrainProgram& job) {
  EvaluationSpec spec;
  spec.program = job.test;
  spec.feeds = job.feeds;
  spec.loss = job.loss;
  spec.metrics = job.metrics;
  spec.outputs = job.outputs;
  return spec;
}

absl::Status SetParameters(const LoadedModel& model, const ProgramDesc& program,
                           Session* session) {
  for (const VarDesc& var : program.global().vars) {
    if (!var.persistable) continue;
    const auto value = model.params.find(var.name);
    if (value == model.params.end())
      return InvalidArgument(
          "'%s' has no '%s': it is of another network than the job's",
          model.path, var.name);
    if (value->second.shape != var.shape)
      return InvalidArgument(
          "'%s': '%s' has shape %s; the job's has %s", model.path, var.name,
          ToString(value->second.shape), ToString(var.shape));
    PD_RETURN_IF_ERROR(session->scope().Set(var.name, value->second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EvaluateJob(const EvalOptions& options, const OpRegistry& registry,
                         LoadedModel model, std::ostream& out) {
  const std::string config = options.config.empty()
                                 ? absl::StrCat(model.run, "/job.pbtxt")
                                 : options.config;
  PD_ASSIGN_OR_RETURN(const LoadedJob job, ReadJobFor(config, options.overrides,
                                                      options.common.seed));
  const absl::Status needs = job.Require({"data.eval"}, "pd-eval");
  if (!needs.ok()) return UsageError(needs);
  PD_ASSIGN_OR_RETURN(const auto requirements,
                      ParseRequirements(options.requirements));
  PD_RETURN_IF_ERROR(CheckRequirements(requirements, ResultsOf(job.proto())));
  RunVocabularies vocabularies(model.run);
  PD_ASSIGN_OR_RETURN(auto loader,
                      OpenLoader(job, job.proto().data().eval(),
                                 job.proto().train().seed(), &vocabularies));
  auto built = BuildTestProgram(registry, job);
  if (!built.ok()) return UsageError(built.status());
  Session session(&registry, job.proto().train().seed());
  session.set_pass_options(MakePassOptions(options.passes));
  EvaluationSpec spec;
  if (model.kind == LoadedModel::Kind::kInference) {
    PD_ASSIGN_OR_RETURN(spec, SpecOfModel(*built, model));
    PD_RETURN_IF_ERROR(FillScope(model, &session.scope()));
  } else {
    spec = SpecOfJob(*built);
    FitNames(spec.program, &model);
    PD_RETURN_IF_ERROR(SetParameters(model, spec.program, &session));
  }
  EvaluationView view;
  if (!options.report.empty()) {
    view.Start(&*built, loader.get(), job.proto().train().log().samples());
    spec.observer = &view;
  }
  NanGuardOptions guarding;
  PD_ASSIGN_OR_RETURN(guarding.rules, NanRulesOfEnvironment());
  NanGuard guard(std::move(guarding));
  if (GetFlag<bool>("FLAGS_check_nan_inf")) {
    const bool own = model.kind != LoadedModel::Kind::kInference;
    guard.Begin(&session, {{}, {}, {}, own ? &built->layers : nullptr});
    spec.guard = &guard;
  }
  auto evaluator = Evaluator::Create(&session, loader.get(), std::move(spec));
  if (!evaluator.ok()) return MarkJobErrors(job, evaluator.status());
  Progress progress(Progress::Standard());
  progress.Begin("evaluating", loader->batches());
  const bool keep = !options.out.empty() || !options.expect.empty();
  auto result = (*evaluator)->Run(keep, [&](int64_t batches, int64_t records) {
    progress.Update(batches, records);
    return true;
  });
  progress.End();
  if (!result.ok())
    return ReportNan(result.status(), guard.finding(), options.common.json(),
                     out);
  const BadRecords bad = AllSkipped(*loader);
  if (bad.count > 0) LogWarning("%s", SkippedText(bad, "eval"));
  const std::vector<Judgement> judgements = Judge(requirements, *result);
  // With --expect there is more to say, in the same JSON object.
  const bool later = options.common.json() && !options.expect.empty();
  std::ostringstream evaluation;
  PrintEvaluation(*result, judgements, options.common.json(),
                  later ? evaluation : out);
  if (!options.report.empty())
    PD_RETURN_IF_ERROR(
        WriteEvaluationReport(options.report, job, model, view, *result));
  if (!keep) return MissedRequirements(judgements);
  // Outputs by their place, so that a run and its exported model compare.
  NamedArrays outputs;
  for (size_t i = 0; i < built->outputs.size(); ++i) {
    const std::string& name = model.kind == LoadedModel::Kind::kInference
                                  ? model.fetches[i]
                                  : built->outputs[i];
    outputs[absl::StrCat("output_", i)] = std::move(result->outputs[name]);
  }
  PD_RETURN_IF_ERROR(DeliverResults(options, outputs, evaluation.str(), out));
  return MissedRequirements(judgements);
}

}  // namespace pd
