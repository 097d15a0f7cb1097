// SPDX-License-Identifier: Apache-2.0
#include "cmd/train_run.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/about_list.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/requirement.h"
#include "cmd/common/stop_signals.h"
#include "cmd/common/text.h"
#include "cmd/common/training_progress.h"
#include "cmd/common/version.h"
#include "cmd/run_check.h"
#include "cmd/starter.h"
#include "cmd/train_preview.h"
#include "cmd/train_programs.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/dist/world.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/metric_results.h"
#include "libcore/nn/zoo/zoo.h"
#include "libcore/report/run_watcher.h"
#include "libcore/train/bench.h"
#include "libcore/train/observer_list.h"
#include "libcore/train/trainer.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

std::string ResultText(const EvaluationResult& result) {
  std::string text;
  if (result.loss.has_value())
    absl::StrAppend(&text, "loss ", ShortNumber(*result.loss));
  for (const auto& [name, value] : result.metrics)
    absl::StrAppend(&text, text.empty() ? "" : "  ", name, " ",
                    absl::StrFormat("%.4f", value));
  return text;
}

// Shows what the trainer does.
class Display : public TrainingProgress {
 public:
  Display(std::ostream* log_json) : log_json_(log_json) {}

  void OnLog(const std::string& line) override {
    if (log_json_ == nullptr) return;
    Clear();
    *log_json_ << line << std::endl;
  }
  void OnEvaluation(int64_t step, const EvaluationResult& result) override {
    LogInfo("step %d: evaluated %d records in %.2f s: %s", step, result.records,
            result.seconds, ResultText(result));
  }
  // The last checkpoint is logged when training goes on; at its end the results
  // name it.
  void OnCheckpoint(const std::string& folder) override { saved_ = folder; }
  void OnStep(const StepReport& report) override {
    SaySaved();
    TrainingProgress::OnStep(report);
  }
  void SaySaved() {
    if (!saved_.empty()) LogInfo("saved '%s'", saved_);
    saved_.clear();
  }
  void OnPlan(int64_t records, const Plan& plan) override {
    const PlanStats& stats = plan.stats();
    LogVerbose(
        "plan for %d records: %d steps; activations %s (%s without sharing); "
        "variables %s",
        records, plan.steps().size(), Megabytes(stats.arena_bytes),
        Megabytes(stats.unplanned_bytes), Megabytes(stats.persistable_bytes));
    for (const StepInfo& step : plan.steps())
      LogDebug("  %s -> %s: %s", step.op_type, step.output,
               step.implementation);
  }

 private:
  std::ostream* log_json_;
  std::string saved_;
};

Json ToJson(const TrainOutcome& outcome, const std::string& run) {
  Json json = {{"run", run},
               {"checkpoint", outcome.checkpoint},
               {"steps", outcome.steps},
               {"seconds", outcome.seconds},
               {"wait_seconds", outcome.wait_seconds},
               {"records", outcome.records},
               {"peak_rss_mb", PeakRssMegabytes()}};
  if (outcome.exchange_seconds > 0)
    json["exchange_seconds"] = outcome.exchange_seconds;
  if (outcome.communication_seconds > 0)
    json["communication_seconds"] = outcome.communication_seconds;
  for (const HeldBytes& held : outcome.held)
    json["held"].push_back(
        {{"states", held.states}, {"gradients", held.gradients}});
  if (!outcome.stopped_early.empty())
    json["stopped_early"] = outcome.stopped_early;
  if (outcome.best.step >= 0)
    json["best"] = {{"step", outcome.best.step},
                    {"metric", outcome.best.metric},
                    {"value", outcome.best.value}};
  if (outcome.evaluation.records > 0) {
    Json& eval = json["eval"];
    eval["records"] = outcome.evaluation.records;
    if (outcome.evaluation.loss.has_value())
      eval["loss"] = *outcome.evaluation.loss;
    for (const auto& [name, value] : outcome.evaluation.metrics)
      eval[name] = value;
  }
  return json;
}

// A finished run keeps the summary that it has.
absl::Status ReportFinished(const TrainOptions& options,
                            const FileBytes& summary,
                            const TrainOutcome& outcome, std::ostream& out) {
  if (!options.common.json()) {
    out << "nothing left to train after step " << outcome.steps << "; saved "
        << outcome.checkpoint << "\n";
    return absl::OkStatus();
  }
  const Json json =
      Json::parse(summary.view().begin(), summary.view().end(), nullptr, false);
  if (json.is_discarded())
    return DataLoss("'%s/summary.json' is damaged: it holds no JSON",
                    options.out);
  out << DumpJson(json) << "\n";
  return absl::OkStatus();
}

absl::Status Report(const TrainOptions& options, const TrainOutcome& outcome,
                    std::ostream& out) {
  PD_ASSIGN_OR_RETURN(const auto requirements,
                      ParseRequirements(options.requirements));
  if (!requirements.empty() && outcome.evaluation.records == 0)
    return FailedPrecondition(
        "'%s' had reached its end already and nothing was evaluated; pd-eval "
        "-m %s judges it",
        options.out, options.out);
  const std::vector<Judgement> judgements =
      Judge(requirements, outcome.evaluation);
  const std::string path = absl::StrCat(options.out, "/summary.json");
  if (outcome.nothing_left) {
    const auto summary = ReadFile(path);
    if (summary.ok()) return ReportFinished(options, *summary, outcome, out);
  }
  const Json json = ToJson(outcome, options.out);
  const World* world = options.common.world.get();
  if (Leads(world))
    PD_RETURN_IF_ERROR(WriteFile(path, DumpJson(json, 2) + "\n"));
  LogVerbose("peak memory %.1f MB", PeakRssMegabytes());
  if (options.common.json()) {
    out << DumpJson(json) << "\n";
    return MissedRequirements(judgements);
  }
  out << absl::StrFormat(
      "%d steps in %.1f s (%.0f records/s)", outcome.steps, outcome.seconds,
      outcome.seconds > 0
          ? static_cast<double>(outcome.records) / outcome.seconds
          : 0.0);
  if (outcome.exchange_seconds > 0)
    out << absl::StrFormat(", %.0f %% of the time between processes",
                           100 * outcome.exchange_seconds / outcome.seconds);
  if (outcome.evaluation.records > 0)
    out << "; " << ResultText(outcome.evaluation);
  out << "\nsaved " << outcome.checkpoint << "\n";
  return MissedRequirements(judgements);
}

// --require, before anything runs.
absl::Status CheckRequired(const TrainOptions& options, const LoadedJob& job) {
  PD_ASSIGN_OR_RETURN(const auto requirements,
                      ParseRequirements(options.requirements));
  if (requirements.empty()) return absl::OkStatus();
  const absl::Status needs = job.Require({"data.eval"}, "--require");
  if (!needs.ok()) return UsageError(needs);
  return CheckRequirements(requirements, ResultsOf(job.proto()));
}

absl::Status TrainJob(const TrainOptions& options, const OpRegistry& registry,
                      const LoadedJob& job, std::ostream& out) {
  PD_RETURN_IF_ERROR(CheckRequired(options, job));
  std::unique_ptr<OutputFile> file;
  std::ostream* log_json = nullptr;
  const World* world = options.common.world.get();
  // Rank 0 writes the run.
  const bool writes = Leads(world);
  if (!options.log_json.empty() && writes) {
    PD_ASSIGN_OR_RETURN(file, OutputFile::Open(options.log_json));
    log_json = &file->stream();
  }
  Display display(log_json);
  WatchOptions watch;
  // A page that is there is made anew, or it would show what is past.
  watch.report =
      options.report ||
      (options.resume && Exists(absl::StrCat(options.out, "/report.html")));
  watch.facts = MachineFacts();
  PD_ASSIGN_OR_RETURN(watch.logs, LogKindsOf(options.logs));
  PD_ASSIGN_OR_RETURN(watch.sound, SoundInputOf(options.log_audio));
  if (!writes) watch = WatchOptions();
  RunWatcher watcher(std::move(watch));
  ObserverList observers({&display});
  if (watcher.wanted()) observers = ObserverList({&display, &watcher});
  InstallStopSignals();
  NanGuardOptions guarding;
  PD_ASSIGN_OR_RETURN(guarding.rules, NanRulesOfEnvironment());
  NanGuard guard(std::move(guarding));
  TrainerOptions trainer_options;
  if (GetFlag<bool>("FLAGS_check_nan_inf")) trainer_options.guard = &guard;
  trainer_options.run = options.out;
  trainer_options.resume = options.resume;
  trainer_options.weights_only = options.weights_only;
  trainer_options.init = InitialSources(options);
  trainer_options.threads = Threads();
  trainer_options.passes = MakePassOptions(options.passes);
  auto trainer = Trainer::Create(&registry, job, trainer_options, &observers);
  if (trainer.status().code() == absl::StatusCode::kAlreadyExists ||
      absl::StartsWith(trainer.status().message(), "--init-"))
    return UsageError(trainer.status());
  if (!trainer.ok()) return MarkJobErrors(job, trainer.status());
  absl::StatusOr<TrainOutcome> outcome = (*trainer)->Run();
  display.End();
  const absl::Status watched =
      watcher.wanted() ? watcher.Finish(outcome.ok() ? &*outcome : nullptr)
                       : absl::OkStatus();
  if (!outcome.ok()) display.SaySaved();
  if (!outcome.ok())
    return ReportNan(MarkJobErrors(job, outcome.status()), guard.finding(),
                     options.common.json(), out);
  PD_RETURN_IF_ERROR(watched);
  if (file != nullptr) PD_RETURN_IF_ERROR(file->Finish());
  if (outcome->stopped_by != 0)
    return StoppedBySignal(
        outcome->stopped_by,
        absl::StrCat("saved '", outcome->checkpoint, "' after step ",
                     outcome->steps, "; --resume goes on from there"));
  if (!outcome->stopped_early.empty())
    LogInfo("stopped early after step %d: %s", outcome->steps,
            outcome->stopped_early);
  if (outcome->nothing_left)
    LogInfo("'%s' has reached its end already: step %d", options.out,
            outcome->steps);
  return Report(options, *outcome, out);
}

absl::Status FitProcesses(const TrainOptions& options, const LoadedJob& job) {
  World* world = options.common.world.get();
  if (world != nullptr && (options.bench.has_value() || options.dry_run))
    return UsageError(
        Unimplemented("--bench and --dry-run work in one process; there are %d",
                      world->size()));
  PD_RETURN_IF_ERROR(FitJobToProcesses(options.common, job));
  return world == nullptr ? absl::OkStatus()
                          : UsageError(world->ExpectSame("--out", options.out));
}

}  // namespace

absl::Status RunTrain(const TrainOptions& options, std::ostream& out) {
  if (options.check_nan_inf)
    PD_RETURN_IF_ERROR(SetFlag("FLAGS_check_nan_inf", "true"));
  if (options.run_check) return RunCheck(options.common.json(), out);
  if (options.networks) {
    PrintAbout(ZooNetworks(), options.common.json(), out);
    return absl::OkStatus();
  }
  if (options.new_kind == "list") {
    ListStarters(options.common.json(), out);
    return absl::OkStatus();
  }
  if (!options.new_kind.empty())
    return WriteStarter(options.new_kind, options.new_folder[0],
                        {options.new_data, options.new_target},
                        options.common.json(), out);
  if (!options.programs.empty()) return TrainPrograms(options, out);
  std::vector<std::string> overrides = options.overrides;
  if (options.steps.has_value())
    overrides.push_back(absl::StrCat("train.steps=", *options.steps));
  for (std::string& override : AmpOverrides(options.amp))
    overrides.push_back(std::move(override));
  PD_ASSIGN_OR_RETURN(const LoadedJob job,
                      ReadJobFor(options.config, overrides, options.common.seed,
                                 options.resume ? options.out : ""));
  PD_RETURN_IF_ERROR(FitProcesses(options, job));
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  registry->SetWorld(options.common.world.get());
  if (options.summary) return PrintSummary(options, *registry, job, out);
  const char* const updates =
      job.proto().phase_size() > 0 ? "phase" : "optimizer";
  if (!options.bench.has_value()) {
    const absl::Status needs =
        job.Require({"loss", updates, "data.train"}, "pd-train");
    if (!needs.ok()) return UsageError(needs);
    return options.dry_run ? PrintDryRun(options, *registry, job, out)
                           : TrainJob(options, *registry, job, out);
  }
  const absl::Status needs = job.Require({"loss", updates}, "pd-train --bench");
  if (!needs.ok()) return UsageError(needs);
  BenchOptions bench;
  bench.seconds = *options.bench;
  bench.passes = MakePassOptions(options.passes);
  bench.times = GetLogLevel() >= LogLevel::kVerbose;
  auto report = BenchTraining(*registry, job, bench);
  if (!report.ok()) return MarkJobErrors(job, report.status());
  LogTimes(*report);
  out << BenchLine(*report) << "\n";
  return absl::OkStatus();
}

}  // namespace pd
