// SPDX-License-Identifier: Apache-2.0
// Reactions of a run to its results: it keeps the best checkpoint, stops
// early (paddle.callbacks.EarlyStopping), lowers the learning rate on a plateau
// (paddle.optimizer.lr.ReduceOnPlateau). Their state is part of TrainState,
// so a resumed run goes on as if it had not been stopped.
#ifndef PD_LIBCORE_TRAIN_MONITORS_H_
#define PD_LIBCORE_TRAIN_MONITORS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/train/evaluator.h"

namespace pd {

/// The best result of evaluation so far, of `train.checkpoint.best` or, where
/// the job has none, of early stopping.
struct BestResult {
  std::string metric;
  double value = 0;
  int64_t step = -1;  ///< -1: nothing is followed, or nothing was finite yet
};

class Monitors {
 public:
  /// `job` is checked: what it follows exists.
  explicit Monitors(const LoadedJob& job);

  /// Puts the schedule into the state: its arguments are the job's; what it has
  /// seen is a resumed run's, unless `fresh`. `rate` is where it starts.
  void Begin(double rate, bool fresh, TrainState* state) const;
  /// The learning rate where a plateau decides it.
  std::optional<double> Rate(const TrainState& state) const;

  /// After an evaluation, and after an epoch with its mean loss. True: this
  /// state is the best so far and is to be saved. An evaluation that is not
  /// `planned` (a run's last, after --steps) can be the best, but a run that
  /// goes on later must not know of it.
  bool OnEvaluation(const EvaluationResult& result, bool planned,
                    TrainState* state) const;
  bool OnEpoch(double train_loss, TrainState* state) const;

  /// The name, value and step of the best result so far; step -1 where there is
  /// none.
  BestResult Best(const TrainState& state) const;

  /// Whether early stopping ends the run, and the reason in words.
  bool Stops(const TrainState& state) const;
  std::string StopReason(const TrainState& state) const;

 private:
  struct Followed {
    std::string name;  ///< "" when nothing is followed
    bool larger = false;
  };
  template <typename Part>
  Followed Follow(const Part& part) const;
  bool OnBest(double value, TrainState* state) const;
  bool OnEarlyStopping(double value, TrainState* state) const;
  void OnPlateau(double value, TrainState* state) const;

  LoadedJob job_;
  Followed best_, early_, plateau_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_MONITORS_H_
