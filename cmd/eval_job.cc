// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_job.h"

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/progress.h"
#include "cmd/common/requirement.h"
#include "cmd/eval_report.h"
#include "cmd/eval_run.h"
#include "cmd/eval_session.h"
#include "cmd/eval_text.h"
#include "cmd/evaluation_spec.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/dist/world.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_changes.h"
#include "libcore/nn/metric_results.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/open_data.h"
#include "libcore/train/policy.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/run_log.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

// The run whose words and classes count.
std::string RunOf(const EvalOptions& options, const LoadedModel& model) {
  return model.run.empty() ? RunOfJobFile(options.config) : model.run;
}

absl::Status StartView(const LoadedJob& job, const TrainProgram& program,
                       const Loader& loader, RunVocabularies* vocabularies,
                       EvaluationView* view) {
  PD_ASSIGN_OR_RETURN(WordsByField words,
                      AllWordsOf(job, job.proto().data().eval(), vocabularies));
  view->Start(&program, &loader, job.proto().train().log().samples(),
              std::move(words));
  return absl::OkStatus();
}

// The job that is given, or the run's own.
absl::StatusOr<LoadedJob> JobFor(const EvalOptions& options,
                                 const LoadedModel& model) {
  return ReadJobFor(options.config.empty()
                        ? absl::StrCat(model.run, "/job.pbtxt")
                        : options.config,
                    options.overrides, options.common.seed, model.run);
}

// Weights fit many networks that they were not trained in.
void WarnOfOtherNetwork(const std::string& run, const LoadedJob& job) {
  if (run.empty()) return;
  const auto trained = ReadJob(absl::StrCat(run, "/job.pbtxt"));
  if (!trained.ok()) return;
  for (const JobChange& change : CompareJobs(*trained, job))
    if (absl::StartsWith(change.field, "model.") ||
        change.field == "program.main")
      LogWarning("'%s' was trained with another network: %s", run,
                 change.ToString());
}

// The network that acts, where the data are of environments.
absl::StatusOr<std::unique_ptr<Policy>> PolicyOf(const LoadedJob& job,
                                                 const LoadedModel& model,
                                                 const TrainProgram& program,
                                                 Session* session,
                                                 Loader* loader) {
  const job::DataSet& set = job.proto().data().eval();
  if (set.has_environment() && model.kind == LoadedModel::Kind::kInference)
    return UsageError(job.At(
        InvalidArgument("an exported network does not act in environments; "
                        "evaluate the run that it comes from"),
        set, "environment"));
  return Policy::Attach(job, set, program, session, loader);
}

// Whether something looks at what the network gives beside losses and metrics,
// such as texts that it writes.
bool NeedsOutputs(const EvalOptions& options, const EvaluationSpec& spec) {
  const bool judged = !spec.loss.empty() || !spec.metrics.empty();
  return !judged || !options.out.empty() || !options.expect.empty() ||
         !options.report.empty() || GetFlag<bool>("FLAGS_check_nan_inf");
}

// Outputs by their place, so that a run and its exported model compare.
NamedArrays OutputsByPlace(const TrainProgram& built, const LoadedModel& model,
                           EvaluationResult* result) {
  NamedArrays outputs;
  for (size_t i = 0; i < built.outputs.size(); ++i) {
    const std::string& name = model.kind == LoadedModel::Kind::kInference
                                  ? model.fetches[i]
                                  : built.outputs[i];
    outputs[absl::StrCat("output_", i)] = std::move(result->outputs[name]);
  }
  return outputs;
}

}  // namespace

absl::Status EvaluateJob(const EvalOptions& options, const OpRegistry& registry,
                         LoadedModel model, std::ostream& out) {
  PD_ASSIGN_OR_RETURN(const LoadedJob job, JobFor(options, model));
  WarnOfOtherNetwork(model.run, job);
  const absl::Status needs = job.Require({"data.eval"}, "pd-eval");
  if (!needs.ok()) return UsageError(needs);
  PD_ASSIGN_OR_RETURN(const auto requirements,
                      ParseRequirements(options.requirements));
  PD_RETURN_IF_ERROR(CheckRequirements(requirements, ResultsOf(job.proto())));
  RunVocabularies vocabularies(RunOf(options, model));
  PD_ASSIGN_OR_RETURN(
      auto loader,
      OpenLoader(job, job.proto().data().eval(), job.proto().train().seed(),
                 &vocabularies, OwnData::BatchesOf(registry.world())));
  auto built = BuildTestProgram(registry, job);
  if (!built.ok()) return UsageError(built.status());
  Session session(&registry, job.proto().train().seed());
  PrepareSession(options, &session);
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
    PD_RETURN_IF_ERROR(StartView(job, *built, *loader, &vocabularies, &view));
    spec.observer = &view;
  }
  NanGuardOptions guarding;
  PD_ASSIGN_OR_RETURN(guarding.rules, NanRulesOfEnvironment());
  NanGuard guard(std::move(guarding));
  if (GetFlag<bool>("FLAGS_check_nan_inf")) {
    if (registry.world() != nullptr)
      return UsageError(Unimplemented(
          "an evaluation that looks for NaN runs in one process; start one"));
    const bool own = model.kind != LoadedModel::Kind::kInference;
    guard.Begin(&session, {{}, {}, {}, own ? &built->test_layers : nullptr});
    spec.guard = &guard;
  }
  PD_ASSIGN_OR_RETURN(const auto policy,
                      PolicyOf(job, model, *built, &session, loader.get()));
  if (!NeedsOutputs(options, spec)) spec.outputs.clear();
  auto evaluator = Evaluator::Create(&session, loader.get(), std::move(spec));
  if (!evaluator.ok()) return MarkJobErrors(job, evaluator.status());
  Progress progress(Progress::Standard());
  progress.Begin("evaluating", loader->batches());
  const bool writes = Leads(registry.world());
  const bool keep = writes && (!options.out.empty() || !options.expect.empty());
  auto result = (*evaluator)->Run(keep, [&](int64_t batches, int64_t records) {
    progress.Update(batches, records);
    return true;
  });
  progress.End();
  if (!result.ok())
    return ReportNan(result.status(), guard.finding(), options.common.json(),
                     out);
  const BadRecords bad = AllSkipped(loader->dataset(), result->left_out);
  if (bad.count > 0 && writes) LogWarning("%s", SkippedText(bad, "eval"));
  const std::vector<Judgement> judgements = Judge(requirements, *result);
  // With --expect there is more to say, in the same JSON object.
  const bool later = options.common.json() && !options.expect.empty();
  std::ostringstream evaluation;
  PrintEvaluation(*result, judgements, options.common.json(),
                  later ? evaluation : out);
  if (!options.report.empty() && writes)
    PD_RETURN_IF_ERROR(
        WriteEvaluationReport(options.report, job, model, view, *result));
  if (!keep) return MissedRequirements(judgements);
  PD_RETURN_IF_ERROR(DeliverResults(
      options, OutputsByPlace(*built, model, &*result), evaluation.str(), out));
  return MissedRequirements(judgements);
}

}  // namespace pd
