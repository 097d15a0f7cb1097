// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/monitors.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/metric_results.h"

namespace pd {
namespace {

constexpr char kTrainLoss[] = "train_loss";

bool LargerIsBetter(const LoadedJob& job, const std::string& name) {
  const auto results = ResultsOf(job.proto());
  const ResultInfo* info = FindResult(results, name);
  return info != nullptr && info->larger_is_better;  // losses are none
}

}  // namespace

// Of EarlyStopping and ReduceOnPlateau, which have the same two fields.
template <typename Part>
Monitors::Followed Monitors::Follow(const Part& part) const {
  Followed followed;
  followed.name = part.has_monitor()               ? part.monitor()
                  : job_.proto().data().has_eval() ? "loss"
                                                   : kTrainLoss;
  followed.larger = part.mode() == Part::auto_
                        ? LargerIsBetter(job_, followed.name)
                        : part.mode() == Part::max;
  return followed;
}

Monitors::Monitors(const LoadedJob& job) : job_(job) {
  const job::Train& train = job_.proto().train();
  if (train.checkpoint().has_best()) {
    const job::Best& best = train.checkpoint().best();
    best_.name = best.metric();
    best_.larger = best.has_mode() ? best.mode() == job::Best::max
                                   : LargerIsBetter(job_, best.metric());
  }
  if (train.has_early_stopping()) early_ = Follow(train.early_stopping());
  const job::LRScheduler& lr = job_.proto().optimizer().lr();
  if (lr.has_reduce_on_plateau()) plateau_ = Follow(lr.reduce_on_plateau());
}

void Monitors::Begin(double rate, bool fresh, TrainState* state) const {
  if (plateau_.name.empty()) {
    state->plateau.reset();
    return;
  }
  const job::ReduceOnPlateau& p =
      job_.proto().optimizer().lr().reduce_on_plateau();
  ReduceOnPlateau rule;
  if (state->plateau.has_value() && !fresh)
    rule = *state->plateau;
  else
    rule.learning_rate = rate;
  rule.max_mode = plateau_.larger;
  rule.factor = p.factor();
  rule.patience = p.patience();
  rule.threshold = p.threshold();
  rule.absolute = p.threshold_mode() == job::ReduceOnPlateau::abs;
  rule.cooldown = p.cooldown();
  rule.min_lr = p.min_lr();
  rule.epsilon = p.epsilon();
  state->plateau = rule;
}

std::optional<double> Monitors::Rate(const TrainState& state) const {
  if (!state.plateau.has_value()) return std::nullopt;
  return state.plateau->learning_rate;
}

bool Monitors::OnEvaluation(const EvaluationResult& result, bool planned,
                            TrainState* state) const {
  // Each sees the value of its own name; what is not finite changes nothing.
  const auto value = [&](const Followed& followed) {
    return result.Find(followed.name).value_or(std::nan(""));
  };
  bool save = false;
  if (!best_.name.empty()) save |= OnBest(value(best_), state);
  if (!planned) return save;
  if (!early_.name.empty() && early_.name != kTrainLoss)
    save |= OnEarlyStopping(value(early_), state);
  if (!plateau_.name.empty() && plateau_.name != kTrainLoss)
    OnPlateau(value(plateau_), state);
  return save;
}

bool Monitors::OnEpoch(double train_loss, TrainState* state) const {
  if (plateau_.name == kTrainLoss) OnPlateau(train_loss, state);
  return early_.name == kTrainLoss && OnEarlyStopping(train_loss, state);
}

bool Monitors::OnBest(double value, TrainState* state) const {
  if (!std::isfinite(value)) return false;
  if (state->best_step >= 0 &&
      (best_.larger ? value <= state->best_value : value >= state->best_value))
    return false;
  state->best_metric = best_.name;
  state->best_value = value;
  state->best_step = state->step;
  return true;
}

bool Monitors::OnEarlyStopping(double value, TrainState* state) const {
  const job::EarlyStopping& p = job_.proto().train().early_stopping();
  EarlyStoppingState& seen = state->early_stopping;
  const bool any = seen.best_step >= 0 || p.has_baseline();
  const double best = seen.best_step >= 0 ? seen.best_value : p.baseline();
  const bool better = early_.larger ? value - p.min_delta() > best
                                    : value + p.min_delta() < best;
  if (!std::isfinite(value) || (any && !better)) {
    ++seen.wait;
    return false;
  }
  seen.best_value = value;
  seen.best_step = state->step;
  seen.wait = 0;
  return p.save_best_model();
}

void Monitors::OnPlateau(double value, TrainState* state) const {
  if (std::isfinite(value)) state->plateau->Step(value);
}

BestResult Monitors::Best(const TrainState& state) const {
  if (!best_.name.empty() && state.best_step >= 0)
    return {best_.name, state.best_value, state.best_step};
  if (early_.name.empty()) return {};
  return {early_.name, state.early_stopping.best_value,
          state.early_stopping.best_step};
}

bool Monitors::Stops(const TrainState& state) const {
  const int64_t patience = job_.proto().train().early_stopping().patience();
  return !early_.name.empty() &&
         state.early_stopping.wait >= std::max<int64_t>(patience, 1);
}

std::string Monitors::StopReason(const TrainState& state) const {
  const EarlyStoppingState& seen = state.early_stopping;
  if (seen.best_step < 0)
    return absl::StrFormat(
        "'%s' was never better than %g in %d comparisons", early_.name,
        job_.proto().train().early_stopping().baseline(), seen.wait);
  return absl::StrFormat(
      "'%s' has not become better than %g, its value at step %d, in %d "
      "comparisons",
      early_.name, seen.best_value, seen.best_step, seen.wait);
}

}  // namespace pd
