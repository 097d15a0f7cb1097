// SPDX-License-Identifier: Apache-2.0
// The update of a step over shards, from the sums of the gradients on: this
// process's share where processes divide it, what they exchange for it, and the
// averages after it.
#ifndef PD_LIBCORE_TRAIN_UPDATE_RUNNER_H_
#define PD_LIBCORE_TRAIN_UPDATE_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/row_sums.h"
#include "libcore/exec/session.h"
#include "libcore/train/state_exchange.h"
#include "libcore/train/train_program.h"

namespace pd {

class UpdateRunner {
 public:
  /// Arguments outlive the runner; the session's variables exist. `buckets` are
  /// those of the gradients, of `count`; `by_bucket` has one process update by
  /// bucket as several do.
  static absl::StatusOr<std::unique_ptr<UpdateRunner>> Create(
      Session* session, const TrainProgram* program,
      const Communicator* processes, const std::vector<size_t>& buckets,
      size_t count, bool by_bucket = false);

  /// Gives the hook for the steps of a plan, in each run; null: none.
  using HookOf = std::function<StepHook*(const Plan& plan)>;
  void set_hooks(HookOf hooks) { hooks_ = std::move(hooks); }

  /// Whether this process's share of the update reads the gradient.
  bool Reads(size_t gradient) const { return reads_[gradient] != 0; }
  /// The mean of a gradient that it reads, until Finish has ended.
  void SetMean(size_t gradient, const float* mean) { means_[gradient] = mean; }
  /// The mean of a gradient of which some rows alone are not 0, for the next
  /// Finish.
  absl::Status SetRows(size_t gradient, const TableRows& mean);
  /// The means of the bucket's gradients are there: what needs no others is
  /// updated. Buckets but the last come in order.
  absl::Status Begin(size_t bucket, const RunContext& context) {
    return RunPart(updates_[bucket], context);
  }
  /// All means are there: does the rest. All processes run it together.
  absl::Status Finish(const RunContext& context);

  /// Spent in exchanges.
  double exchange_seconds() const { return exchange_seconds_; }

 private:
  // A program that is fed means, and then numbers that were exchanged.
  struct Part {
    std::unique_ptr<Plan> plan;     // null: it has no ops
    std::vector<size_t> gradients;  // fed
    std::vector<size_t> squares;    // fed behind them
  };
  UpdateRunner(Session* session, const ShardPrograms* program,
               const Communicator* processes);
  absl::Status CompileAll();
  absl::Status CompileShare();
  absl::Status MakeRoom(size_t gradient, size_t rows);
  absl::StatusOr<Part> Compile(ProgramDesc program, const char* label,
                               const std::vector<std::string>& fetches);
  absl::Status RunPart(const Part& part, const RunContext& context);
  absl::Status ExchangeSquares();

  Session* session_;
  const ShardPrograms& program_;
  const Communicator& processes_;
  HookOf hooks_;
  std::vector<uint8_t> reads_;
  std::vector<const float*> means_;
  std::vector<ProgramDesc> programs_;  // of the updates, by bucket
  std::vector<Part> updates_;
  bool outgrown_ = false;  // rows need plans with more room
  Part norms_, after_;
  std::vector<float> squares_;  // of all gradients that are clipped
  std::optional<VariableBroadcast> parameters_;
  double exchange_seconds_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_UPDATE_RUNNER_H_
