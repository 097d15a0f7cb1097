// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_job.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cmd/check_naninf_text.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/processes.h"
#include "cmd/common/training_progress.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/trainer.h"

namespace pd {
namespace {

// The bar, and how far it came.
class Display : public TrainingProgress {
 public:
  void OnStep(const StepReport& report) override {
    TrainingProgress::OnStep(report);
    steps_ = report.step;
  }
  int64_t steps() const { return steps_; }

 private:
  int64_t steps_ = 0;
};

absl::StatusOr<std::set<std::string>> KindsOf(
    const std::vector<std::string>& texts) {
  std::set<std::string> kinds;
  const std::vector<std::string>& known = WatchKinds();
  for (const std::string& text : texts)
    for (const std::string& word :
         std::vector<std::string>(absl::StrSplit(text, ','))) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        return CommandLineError(absl::StrCat("--watch '", text, "': '", word,
                                             "' is none of ",
                                             absl::StrJoin(known, ", ")));
      kinds.insert(word);
    }
  return kinds;
}

bool IsGood(const NamedArrays& arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const auto& entry) {
    return FirstBad(entry.second) < 0;
  });
}

// The step of the newest checkpoint without NaN and Inf; 0 when there is none.
absl::StatusOr<int64_t> NewestGood(const std::string& run, int* threads) {
  const std::vector<int64_t> steps = ListCheckpoints(run);
  if (steps.empty())
    return NotFound("'%s' is no run: it holds no checkpoint", run);
  for (size_t i = steps.size(); i-- > 0;) {
    PD_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                        ReadCheckpoint(CheckpointPath(run, steps[i])));
    *threads = checkpoint.state.threads;
    if (IsGood(checkpoint.params) && IsGood(checkpoint.opt)) return steps[i];
    LogInfo("the checkpoint of step %d holds NaN or Inf", steps[i]);
  }
  return 0;
}

// --bisect: where to go on. The bits are those of the run when the number of
// threads is.
absl::Status StartFromRun(const CheckNaninfOptions& options,
                          TrainerOptions* trainer) {
  int threads = 0;
  PD_ASSIGN_OR_RETURN(const int64_t step,
                      NewestGood(options.files[0], &threads));
  if (!options.common.threads.has_value() && threads > 0) SetThreads(threads);
  trainer->threads = Threads();
  if (step == 0) {
    LogInfo("no checkpoint is good: training from the start");
    return absl::OkStatus();
  }
  LogInfo("going on from the checkpoint of step %d", step);
  trainer->run = options.files[0];
  trainer->resume = true;
  trainer->from_step = step;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJob(const CheckNaninfOptions& options,
                      const OpRegistry& registry, std::ostream& out) {
  PD_RETURN_IF_ERROR(RequireOneProcess());
  NanGuardOptions guarding;
  PD_ASSIGN_OR_RETURN(guarding.watch, KindsOf(options.watch));
  PD_ASSIGN_OR_RETURN(guarding.rules, RulesOf(options));
  guarding.every = options.every;
  std::vector<std::string> overrides = options.overrides;
  if (options.steps.has_value())
    overrides.push_back(absl::StrCat("train.steps=", *options.steps));
  const std::string config = options.config.empty()
                                 ? absl::StrCat(options.files[0], "/job.pbtxt")
                                 : options.config;
  TrainerOptions training;
  if (!options.init_from.empty()) {
    training.init.emplace_back();
    training.init.back().model = options.init_from;
  }
  training.read_only = true;
  training.threads = Threads();
  if (options.bisect) PD_RETURN_IF_ERROR(StartFromRun(options, &training));
  PD_ASSIGN_OR_RETURN(const LoadedJob job,
                      ReadJobFor(config, overrides, options.common.seed));
  const absl::Status needs =
      job.Require({"loss", job.proto().phase_size() > 0 ? "phase" : "optimizer",
                   "data.train"},
                  "pd-check-naninf");
  if (!needs.ok()) return UsageError(needs);

  Display display;
  HalfRanges ranges;
  if (options.half)
    guarding.look = [&ranges](const OpDesc& op, const std::string& variable,
                              const Tensor& value) {
      if (value.raw() != nullptr && !value.is_array())
        ranges.Add(variable, op.type, ToArray(value));
    };
  const bool json = options.common.json();
  guarding.on_watch = [&](int64_t step, const std::vector<WatchedKind>& kinds) {
    display.Clear();
    out << WatchLine(step, kinds, json) << std::endl;
  };
  NanGuard guard(std::move(guarding));
  training.guard = &guard;
  InstallStopSignals();
  auto trainer = Trainer::Create(&registry, job, training, &display);
  absl::Status status = trainer.status();
  int stopped_by = 0;
  if (status.ok()) {
    const absl::StatusOr<TrainOutcome> outcome = (*trainer)->Run();
    status = outcome.status();
    if (outcome.ok()) stopped_by = outcome->stopped_by;
  }
  display.End();
  PD_RETURN_IF_ERROR(ReportCheck(options, MarkJobErrors(job, status),
                                 guard.finding(), {display.steps(), "steps"},
                                 ranges, out));
  if (stopped_by != 0)
    return StoppedBySignal(
        stopped_by, absl::StrCat("stopped after step ", display.steps()));
  return absl::OkStatus();
}

}  // namespace pd
