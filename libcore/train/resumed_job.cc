// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/resumed_job.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kMostListed = 6;

// Whether `field` is `part` or lies inside it.
bool IsIn(absl::string_view field, absl::string_view part) {
  return absl::StartsWith(field, part) &&
         (field.size() == part.size() || field[part.size()] == '.');
}

// A free change is of a field that no step computes with.
bool IsFree(const JobChange& change) {
  static constexpr const char* kFree[] = {"name",
                                          "metric",
                                          "program.fetch",
                                          "data.eval",
                                          "data.train.num_workers",
                                          "data.train.prefetch_factor",
                                          "train.epochs",
                                          "train.steps",
                                          "train.evaluation",
                                          "train.checkpoint",
                                          "train.log",
                                          "train.early_stopping"};
  return std::any_of(std::begin(kFree), std::end(kFree), [&](const char* part) {
    return IsIn(change.field, part);
  });
}

// A file that is gone from where it was has moved: the run can only go on with
// the new path.
bool HasMoved(const JobChange& change) {
  std::error_code error;
  if (change.old_file.empty()) return false;
  // A model is also named by the beginning of its files' names, or as RUN@best.
  for (const std::string& file :
       {change.old_file, absl::StrCat(change.old_file, ".pdmodel"),
        change.old_file.substr(0, change.old_file.rfind('@'))})
    if (std::filesystem::exists(file, error) || error) return false;
  return true;
}

// Whether results of before and results from here on are of two kinds.
bool ChangesResults(const JobChange& change) {
  for (const char* part :
       {"metric", "data.eval", "train.checkpoint.best",
        "train.early_stopping.monitor", "train.early_stopping.mode",
        "train.early_stopping.baseline",
        "optimizer.lr.reduce_on_plateau.monitor",
        "optimizer.lr.reduce_on_plateau.mode"})
    if (IsIn(change.field, part)) return true;
  return false;
}

bool IsOfOptimizer(const JobChange& change) {
  return IsIn(change.field, "optimizer") ||
         IsIn(change.field, "phase.optimizer");
}

bool IsRate(const JobChange& change) {
  return IsIn(change.field, "optimizer.lr") ||
         IsIn(change.field, "phase.optimizer.lr") ||
         (IsOfOptimizer(change) &&
          absl::EndsWith(change.field, ".learning_rate"));
}

bool IsFresh(const JobChange& change) {
  return IsOfOptimizer(change) || IsIn(change.field, "amp");
}

std::string Listed(const std::vector<JobChange>& changes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < changes.size() && i < kMostListed; ++i)
    texts.push_back(changes[i].ToString());
  if (changes.size() > kMostListed)
    texts.push_back(absl::StrCat(changes.size() - kMostListed, " more"));
  return absl::StrJoin(texts, "; ");
}

// How to train what the job says after all.
std::string WaysOut(const std::string& run) {
  return absl::StrCat(
      "another --out trains this job from the start, another --out with "
      "--init-from '",
      run, "' from this run's weights");
}

}  // namespace

absl::StatusOr<ResumedChanges> ChangesSince(const std::string& run,
                                            const LoadedJob& job,
                                            bool weights_only) {
  ResumedChanges changes;
  const std::string path = absl::StrCat(run, "/job.pbtxt");
  const auto before = ReadJob(path);
  if (absl::IsNotFound(before.status())) {
    LogWarning("'%s' is not there: it is not known what the run was trained by",
               path);
    return changes;
  }
  PD_RETURN_IF_ERROR(before.status());
  std::vector<JobChange> others;
  for (JobChange& change : CompareJobs(*before, job)) {
    const bool moved = HasMoved(change);
    changes.new_results |= !moved && ChangesResults(change);
    changes.new_rate |= absl::EndsWith(change.field, ".learning_rate");
    std::vector<JobChange>& list = moved || IsFree(change) ? changes.free
                                   : IsRate(change)        ? changes.rates
                                   : weights_only && IsFresh(change)
                                       ? changes.fresh
                                       : others;
    list.push_back(std::move(change));
  }
  if (others.empty()) return changes;
  return AlreadyExists(
      "'%s' was trained by another job: %s; --resume goes on with other "
      "epochs, evaluations, logs, checkpoints and learning rates only: %s",
      run, Listed(others), WaysOut(run));
}

void ReportChanges(const ResumedChanges& changes) {
  for (const JobChange& change : changes.free)
    LogInfo("--resume: %s", change.ToString());
  for (const auto* list : {&changes.rates, &changes.fresh})
    for (const JobChange& change : *list)
      LogWarning("--resume trains otherwise from here on: %s",
                 change.ToString());
}

void ForgetChanged(const ResumedChanges& changes, TrainState* state) {
  if (changes.new_rate) state->plateau.reset();
  if (!changes.new_results) return;
  LogInfo("--resume: the best result is looked for anew");
  state->best_step = -1;
  state->early_stopping = {};
  if (state->plateau.has_value()) state->plateau->has_best = false;
}

absl::Status KeepJobAtEnd(const std::string& run, int64_t step,
                          const ResumedChanges& changes) {
  if (!changes.ChangeTraining()) {
    if (!changes.free.empty())
      LogInfo("'%s' has reached its end and keeps the job that it has: %s", run,
              Listed(changes.free));
    return absl::OkStatus();
  }
  std::vector<JobChange> all = changes.rates;
  all.insert(all.end(), changes.fresh.begin(), changes.fresh.end());
  return AlreadyExists(
      "'%s' has reached its end at step %d, so nothing would be trained with "
      "what has changed: %s; a larger train.epochs or train.steps goes on, %s",
      run, step, Listed(all), WaysOut(run));
}

}  // namespace pd
