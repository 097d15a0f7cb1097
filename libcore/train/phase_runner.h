// SPDX-License-Identifier: Apache-2.0
// The phases of a step of training, one after the other, on the batch of the
// step or on further ones.
#ifndef PD_LIBCORE_TRAIN_PHASE_RUNNER_H_
#define PD_LIBCORE_TRAIN_PHASE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/train/job_amp.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/train_program.h"

namespace pd {

class NanGuard;

/// A phase in a step that is done.
struct PhaseReport {
  std::string name;
  float loss = 0;  ///< the mean over its runs
  double learning_rate = 0;
};

/// The result of the phases of a step.
struct PhasesDone {
  int64_t batch = 0;    ///< batches of the epoch done
  int64_t records = 0;  ///< of the batches of the step
  float loss = 0;       ///< the sum of the phases' losses
};

class PhaseRunner {
 public:
  /// `session`, `program` and `loader` outlive the runner. The session's
  /// variables exist. `on_plan` may be null.
  static absl::StatusOr<PhaseRunner> Create(
      Session* session, const TrainProgram* program, Loader* loader,
      const std::function<void(int64_t records, const Plan& plan)>& on_plan);

  /// Gives the hook for the steps of a plan, in each run; null: none.
  using HookOf = std::function<StepHook*(const Plan& plan)>;
  void set_hooks(HookOf hooks) { hooks_ = std::move(hooks); }

  /// Looks at each run; a finding is explained where the guard has copies from
  /// before that run. It outlives the runner. `labels`: inputs that only losses
  /// read.
  void set_guard(NanGuard* guard, std::set<std::string> labels) {
    guard_ = guard;
    labels_ = std::move(labels);
  }

  /// Compiles the plans of batches of these fields.
  absl::Status Compile(const std::vector<BatchField>& fields);

  /// Runs all phases of step `step` (from 0): on `batch`, the loader's last
  /// one, and on further ones that it takes from the loader. Random numbers
  /// are those of `seed`, the step and the number of the run in it. Where the
  /// epoch ends early, for records that cannot be read, the runs that are left
  /// are left out. An error names the phase; IsNanFound with a guard that found
  /// a number that is not finite.
  absl::StatusOr<PhasesDone> Run(const Batch& batch, uint64_t seed,
                                 int64_t step, int64_t epoch);

  /// Of the phases that the last step ran, in their order.
  const std::vector<PhaseReport>& reports() const { return reports_; }
  /// The plans that the last step ran.
  const std::vector<Plan*>& plans() const { return ran_; }

 private:
  struct Part {
    const PhaseProgram* phase;
    PlanCache plans;
    Tensor* rate;
    ScaleWatch scale;
  };
  PhaseRunner() = default;
  absl::Status RunPlan(const Part& part, const Batch& batch,
                       const RunContext& context, int64_t step, int64_t epoch,
                       Plan* plan);

  Loader* loader_ = nullptr;
  int64_t runs_per_step_ = 0;
  std::vector<Part> parts_;
  std::vector<PhaseReport> reports_;
  std::vector<Plan*> ran_;
  HookOf hooks_;
  NanGuard* guard_ = nullptr;
  std::set<std::string> labels_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PHASE_RUNNER_H_
