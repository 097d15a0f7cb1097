// SPDX-License-Identifier: Apache-2.0
// One step of training after the other: picks the plan for a batch's shapes,
// sets learning rate, seed and step number, runs the plan, and hands out the
// loss. Three things lie between a batch and its loss, and are known here
// alone: a GPU may still compute a step while the next one is started; the
// guard may undo steps and repeat them to explain a NaN; the factor of loss
// scaling may drop. Epochs, evaluations, checkpoints and logs are the caller's.
#ifndef PD_LIBCORE_TRAIN_STEP_RUNNER_H_
#define PD_LIBCORE_TRAIN_STEP_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/train/copy_runner.h"
#include "libcore/train/job_amp.h"
#include "libcore/train/newton_runner.h"
#include "libcore/train/phase_runner.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/shard_runner.h"
#include "libcore/train/train_program.h"

namespace pd {

class NanGuard;

/// A step that is done.
struct StepReport {
  int64_t step = 0;   ///< steps done, this one included
  int64_t epoch = 0;  ///< from 0
  int64_t batch = 0;  ///< batches of the epoch done
  int64_t records = 0;
  float loss = 0;
  double learning_rate = 0;  ///< with phases, the first one's
  /// Where the job has phases: each in this step, valid during the call.
  const std::vector<PhaseReport>* phases = nullptr;
  /// Where the network acts in environments: what they have given so far.
  const Experience* experience = nullptr;
};

/// The gradient of a parameter as the last backward pass made it, before
/// clipping and decay.
struct ParameterGradient {
  std::string parameter;
  const Tensor* gradient = nullptr;
};

/// The steps and epochs that are done before a step.
struct StepPosition {
  int64_t step = 0;
  int64_t epoch = 0;
};

struct StepRunnerOptions {
  Session* session = nullptr;             ///< outlives the runner
  const TrainProgram* program = nullptr;  ///< outlives the runner
  Loader* loader = nullptr;  ///< gives the batches; outlives the runner
  /// Null: none; outlives the runner.
  NanGuard* guard = nullptr;
  /// The learning rate of a step. Steps that the guard repeats ask again.
  std::function<double(StepPosition at)> rate;
  /// Is told of every step once, in order, when its loss is known: during the
  /// call of Run for it or, on a GPU, during the next one or Complete. Its
  /// error is that call's.
  std::function<absl::Status(const StepReport& report)> on_step;
  /// Is told of each plan that is compiled; may be null.
  std::function<void(int64_t records, const Plan& plan)> on_plan;
};

class StepRunner {
 public:
  /// From here on the session's plans look for NaN, with a guard.
  explicit StepRunner(StepRunnerOptions options);

  /// Compiles the first plan; the session's variables have the values that
  /// training starts from. That plan is the one of a whole batch, also when the
  /// first step has a smaller one: it decides how parameters are laid out, and
  /// so the bits. Where records differ in shape, it is the one of the very
  /// first batch, for which the loader starts its first epoch. `seed` is that
  /// of the steps' random numbers.
  absl::Status Prepare(uint64_t seed);

  /// Runs the step that follows `at` on `batch`, the loader's last one.
  /// With `gradients` they stay until the next call, for Gradients. An error
  /// names the step. FailedPrecondition for a loss that is not finite; with a
  /// guard, IsNanFound for any value that is not, which the guard has
  /// explained. Phases may take further batches from the loader; they keep no
  /// gradients.
  absl::Status Run(const Batch& batch, StepPosition at, bool gradients);

  /// Times of the ShardRunner; 0 without shards.
  double exchange_seconds() const {
    return shards_ == nullptr ? 0 : shards_->exchange_seconds();
  }
  double communication_seconds() const {
    return shards_ == nullptr ? 0 : shards_->communication_seconds();
  }

  /// As ShardRunner::Held; empty where the update is not divided.
  absl::StatusOr<std::vector<HeldBytes>> Held() const {
    if (shards_ == nullptr || !program_.shards->sharding.has_value())
      return std::vector<HeldBytes>();
    return shards_->Held();
  }

  /// Batches of the epoch that are done after Run.
  int64_t batches_done() const { return batches_done_; }

  /// Of the step that Run has run with `gradients`.
  std::vector<ParameterGradient> Gradients() const;

  /// Waits for the step that a GPU computes still. Before anything else than a
  /// step uses the variables.
  absl::Status Complete();

  /// An evaluation follows, which cannot be repeated: the guard goes back no
  /// further than to the next step.
  void ForgetCopies();

 private:
  struct Pending {
    Plan* plan = nullptr;  // null: there is none
    StepReport report;
  };

  absl::Status MakePlanCaches();
  absl::Status Compile(const std::vector<BatchField>& fields);
  std::vector<std::string> Fetches() const;  // the loss, and its factor
  absl::StatusOr<Plan*> FeedForGradients(const Batch& batch);
  absl::Status Explained(const Batch& batch, const StepReport& report,
                         const absl::Status& status) const;
  absl::Status RunPhases(const Batch& batch, StepPosition at);
  absl::StatusOr<PhasesDone> DoPhases(const Batch& batch,
                                      const StepReport& report);
  absl::Status RunShards(const Batch& batch, StepPosition at);
  absl::Status RunNewton(const Batch& batch, StepPosition at);
  RunContext BeginStep(const StepReport& report);
  absl::Status RunPlan(const Batch& batch, Plan* plan,
                       const StepReport& report);
  absl::Status TraceNan(const Batch& batch, const Plan& plan,
                        const StepReport& report, const absl::Status& found);
  absl::Status Repeat(int64_t last);
  absl::Status TakeLoss(StepReport report, const Plan& plan);

  const StepRunnerOptions options_;
  const TrainProgram& program_;
  uint64_t seed_ = 0;
  std::optional<PlanCache> plans_, gradient_plans_;
  std::optional<PhaseRunner> phases_;     // instead of plans_
  std::unique_ptr<ShardRunner> shards_;   // the same
  std::unique_ptr<NewtonRunner> newton_;  // the same
  CopyRunner copies_;
  int64_t batches_done_ = 0;
  const Plan* gradients_ = nullptr;  // of the last step that kept them
  Tensor* rate_ = nullptr;
  ScaleWatch scale_;
  Pending pending_;
  StepReport copied_;  // the step before which the guard has taken its copies
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_STEP_RUNNER_H_
