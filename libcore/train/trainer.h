// SPDX-License-Identifier: Apache-2.0
// The training loop: epochs, evaluations, checkpoints, logs, resuming; a
// StepRunner runs the steps. It prints nothing: an observer is told what
// happens. What it writes under RUN:
// job.pbtxt (the effective job), log.jsonl, vocabularies/, checkpoints/,
// latest, summary.json.
#ifndef PD_LIBCORE_TRAIN_TRAINER_H_
#define PD_LIBCORE_TRAIN_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/passes/pipeline.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/initial_values.h"
#include "libcore/train/monitors.h"
#include "libcore/train/step_runner.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The parts of a run, for observers that inspect them; lives as long as the
/// trainer.
struct TrainStart {
  const LoadedJob* job = nullptr;
  const TrainProgram* program = nullptr;
  Session* session = nullptr;
  const Loader* loader = nullptr;
  const Loader* eval_loader = nullptr;  ///< null without an evaluation set
  std::string run;
  int64_t step = 0;  ///< steps done before, in a run that goes on
};

/// Observer of a training. Every function may be left as it is.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  /// Before the first step; an error ends the run.
  virtual absl::Status OnStart(const TrainStart& /*start*/) {
    return absl::OkStatus();
  }
  /// `done` batches of `batches` are behind already (after a resume).
  virtual void OnEpoch(int64_t /*epoch*/, int64_t /*epochs*/,
                       int64_t /*batches*/, int64_t /*done*/) {}
  virtual void OnStep(const StepReport& /*report*/) {}
  /// Whether OnGradients shall follow this step, counted from 1. Such a step
  /// keeps the gradients until its end.
  virtual bool WantsGradients(int64_t /*step*/) { return false; }
  virtual void OnGradients(
      int64_t /*step*/, const std::vector<ParameterGradient>& /*gradients*/) {}
  /// A line of log.jsonl, without its line break.
  virtual void OnLog(const std::string& /*line*/) {}
  virtual void OnEvaluationStep(int64_t /*batches*/, int64_t /*of*/) {}
  virtual void OnEvaluation(int64_t /*step*/,
                            const EvaluationResult& /*result*/) {}
  /// The observer of the batches of every evaluation; null: none.
  virtual EvaluationObserver* BatchObserver() { return nullptr; }
  virtual void OnCheckpoint(const std::string& /*folder*/) {}
  /// A plan was compiled: its memory.
  virtual void OnPlan(int64_t /*records*/, const Plan& /*plan*/) {}
  /// An error of the observer itself; ends the run after this step.
  virtual absl::Status Failure() { return absl::OkStatus(); }
  /// Not 0: stop after this step, save, and return.
  virtual int StopSignal() { return 0; }
};

struct TrainerOptions {
  std::string run;            ///< RUN
  bool resume = false;        ///< go on from RUN's newest checkpoint, if any
  bool weights_only = false;  ///< with `resume`: a fresh optimizer
  /// The sources of initial values in place of those of the job's `init`.
  std::vector<InitialParameters> init;
  int threads = 1;            ///< recorded in checkpoints
  PassOptions passes;         ///< of every program that it compiles
  NanGuard* guard = nullptr;  ///< looks for NaN and Inf; outlives the trainer
  /// Writes nothing, neither RUN nor checkpoints; `run` may be "".
  bool read_only = false;
  int64_t from_step = -1;  ///< with `resume`: from this checkpoint
};

struct TrainOutcome {
  int64_t steps = 0;   ///< done in all
  int stopped_by = 0;  ///< the signal, 0 when training reached its end
  /// A finished run was resumed: nothing was done and no file was written.
  bool nothing_left = false;
  std::string stopped_early;    ///< why early stopping ended it; "" when not
  double seconds = 0;           ///< of training in this process
  double wait_seconds = 0;      ///< of them, waiting for data
  double exchange_seconds = 0;  ///< of them, waiting for other processes
  /// Exchanging with other processes, also while gradients were computed.
  double communication_seconds = 0;
  /// Where they divide the update, by rank; else empty.
  std::vector<HeldBytes> held;
  int64_t records = 0;          ///< trained on in this process
  std::string checkpoint;       ///< the last one's folder
  EvaluationResult evaluation;  ///< the last one; 0 records when there is none
  BestResult best;
};

class Trainer {
 public:
  /// Builds programs, opens the data, sets initial or resumed values. Errors of
  /// the job are marked by their place FILE:LINE:COLUMN. AlreadyExists when RUN
  /// holds checkpoints and `resume` is false, or when it cannot go on with this
  /// job (resumed_job.h); FailedPrecondition when another process trains in
  /// RUN.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const OpRegistry* registry, const LoadedJob& job,
      const TrainerOptions& options, TrainObserver* observer);
  ~Trainer();

  /// Trains to the end, or until the observer asks to stop.
  absl::StatusOr<TrainOutcome> Run();

 private:
  class Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_TRAINER_H_
