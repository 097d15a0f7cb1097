// SPDX-License-Identifier: Apache-2.0
// A step of training over the shards of a batch, of which this process
// computes some: gradients by shard, their means over all processes, one update
// everywhere. The bits are those of any other number of processes.
#ifndef PD_LIBCORE_TRAIN_SHARD_RUNNER_H_
#define PD_LIBCORE_TRAIN_SHARD_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/dist/bucket_sums.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/row_sums.h"
#include "libcore/dist/shard_sum.h"
#include "libcore/dist/shard_team.h"
#include "libcore/dist/step_model.h"
#include "libcore/exec/session.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/train_program.h"
#include "libcore/train/update_runner.h"

namespace pd {

/// Bytes that a process holds for the update.
struct HeldBytes {
  int64_t states = 0;     ///< of the optimizer
  int64_t gradients = 0;  ///< sums over the shards
};

class ShardRunner {
 public:
  /// All arguments but `on_plan`, which may be null, outlive the runner; the
  /// session's variables exist. InvalidArgument where there are more processes
  /// than shards.
  static absl::StatusOr<std::unique_ptr<ShardRunner>> Create(
      Session* session, const TrainProgram* program, Loader* loader,
      const std::function<void(int64_t records, const Plan& plan)>& on_plan);

  /// Compiles the plans of shards of these fields.
  absl::Status Compile(const std::vector<BatchField>& fields);

  /// Runs step `step` (from 0): on `batch`, the loader's last shard, and on the
  /// further ones of this process, which it takes from the loader. Random
  /// numbers are those of `seed`, the step and the shard. Gives the mean loss
  /// of the batch's records.
  absl::StatusOr<float> Run(const Batch& batch, uint64_t seed, int64_t step);

  /// Gives the hook for the steps of a plan, in each run; null: none. While
  /// the recorder records, buckets that travel and the waiting for them are
  /// events too. Call it before Compile.
  using HookOf = UpdateRunner::HookOf;
  void set_hooks(HookOf hooks);
  /// Has one process work bucket by bucket, as several do, and measures it.
  /// Call it before Compile.
  void TimeSteps() { timed_ = true; }
  /// The step that has been run last: all but `rest`.
  const StepTimeline& timeline() const { return timeline_; }

  /// Spent in waiting for numbers of the other processes.
  double exchange_seconds() const {
    return exchange_seconds_ +
           (update_ == nullptr ? 0 : update_->exchange_seconds()) +
           (team_ == nullptr ? 0 : team_->exchange_seconds());
  }
  /// Spent in exchanging them, the time included that was hidden behind the
  /// computation of further gradients.
  double communication_seconds() const {
    return sums_->exchange_seconds() +
           (team_ == nullptr ? 0 : team_->exchange_seconds());
  }

  /// By process, where they share the update; all ask together.
  absl::StatusOr<std::vector<HeldBytes>> Held() const;

 private:
  class LastShard;
  // A shard that is computed together with the others.
  struct Together {
    std::unique_ptr<PlanCache> plans;
    Batch batch;
    std::vector<Tensor> fields;              // its bytes
    std::vector<std::vector<float>> values;  // of the statistics
    Plan* plan = nullptr;
  };
  // Numbers of one kind within a bucket of those that are added up.
  struct Part {
    size_t bucket = 0;
    int64_t begin = 0, size = 0;
  };

  ShardRunner(Session* session, const TrainProgram* program, Loader* loader);
  void MakeBuckets();
  std::vector<std::vector<size_t>> GradientsByBucket() const;
  absl::Status RunShards(const Batch& batch, const RunContext& context,
                         bool* handed_out);
  absl::Status RunShard(const Batch& shard, RunContext context);
  absl::Status RunTogether(const Batch& batch, const RunContext& context,
                           bool* handed_out);
  absl::Status KeepBatch(const Batch& batch, Together* shard);
  absl::Status ComputeTogether(const RunContext& context);
  void SetWeight(const Batch& shard);
  void TakeResults(const Plan& plan);
  void Take(const float* from, const Part& part);
  void TakeGradient(const Plan& plan, size_t i);
  void Add(size_t bucket, bool present);
  void AddNone();
  void AddRest(bool failed);
  absl::Status CollectRows();
  absl::Status Collect(const RunContext& context, bool failed,
                       absl::Status* updated);
  void SetMeans(size_t bucket);
  StepHook* HookFor(const Plan& plan) const {
    return hooks_ != nullptr ? hooks_(plan) : nullptr;
  }

  Session* session_;
  const TrainProgram& training_;
  const ShardPrograms& program_;
  Loader* loader_;
  Communicator alone_;
  const Communicator* processes_;
  ShardRange own_;
  Part loss_part_;
  std::vector<Part> gradients_, statistics_;  // in the program's order
  std::vector<Tensor*> values_;               // of the statistics
  std::vector<std::vector<float>> before_;    // the step: their values
  std::unique_ptr<BucketSums> sums_;
  std::vector<std::unique_ptr<RowSums>> rows_;  // by gradient; null: in sums_
  // Rooms for the numbers of the shard at hand, by bucket; a full one is null.
  std::vector<float*> leaves_;
  float weight_ = 0;                  // of the shard at hand
  std::vector<const float*> means_;   // by bucket
  std::vector<int64_t> means_begin_;  // the number that each begins with
  std::unique_ptr<PlanCache> plans_;
  // Where shards exchange numbers while they are computed.
  std::unique_ptr<ShardTeam> team_;
  std::vector<Together> together_;  // of this process
  std::unique_ptr<UpdateRunner> update_;
  double exchange_seconds_ = 0;
  HookOf hooks_;
  bool timed_ = false;
  double shard_begin_ = 0;
  StepTimeline timeline_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHARD_RUNNER_H_
