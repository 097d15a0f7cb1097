// SPDX-License-Identifier: Apache-2.0
// The shards of a batch as if each were a process of its own: operators that
// exchange numbers with other processes, such as sync_batch_norm, exchange them
// with the other shards then. A process runs its shards in turns, each on a
// thread of its own, from one exchange to the next, so that all of them come to
// it; one shard computes at a time. An exchange is one of shards whatever
// process has which, and so are its bits.
#ifndef PD_LIBCORE_DIST_SHARD_TEAM_H_
#define PD_LIBCORE_DIST_SHARD_TEAM_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/shard_sum.h"
#include "libcore/dist/world.h"

namespace pd {

/// How a process runs its shards.
struct ShardTurns {
  /// All of a shard, on the shard's thread. `shards` has a rank for each shard
  /// of the batch that has records, and its weight.
  std::function<absl::Status(int64_t shard, const World& shards)> run;
  /// Before and after each turn of a shard, while no other one computes.
  std::function<void(int64_t shard)> enter, leave;
  /// Called around each exchange, which it has to make; may be null.
  std::function<void(const std::function<void()>& exchange)> around;
};

class ShardTeam {
 public:
  /// `processes` outlives this and is used by Run alone while that runs.
  ShardTeam(int64_t shards, const Communicator* processes);
  ~ShardTeam();
  ShardTeam(const ShardTeam&) = delete;
  ShardTeam& operator=(const ShardTeam&) = delete;

  /// Runs this process's shards that have records; `records` says how many each
  /// of its shards has. All processes call it. The error of a shard of this
  /// process; Unavailable where one of another has failed, and
  /// FailedPrecondition where shards come to different exchanges.
  absl::Status Run(const std::vector<int64_t>& records,
                   const ShardTurns& turns);

  /// Spent in exchanges, waiting for other processes included.
  double exchange_seconds() const { return exchange_seconds_; }

 private:
  class Member;
  // The operation of one exchange, the same in all shards.
  enum class Kind : int64_t { kNone, kAllGather, kAllToAll };
  struct State;  // of a process, for the others

  void Stop();
  absl::Status LearnMembers(const std::vector<int64_t>& records);
  void GiveTurn(Member* member);
  void WorkOf(Member* member);
  absl::Status Exchange(bool* more);
  absl::StatusOr<State> OwnState();
  absl::Status AllGather(size_t bytes);
  absl::Status AllToAll();

  const int64_t shards_;
  const Communicator& processes_;
  const ShardRange own_;
  const int threads_;                             // of each shard's computation
  std::vector<std::unique_ptr<Member>> members_;  // of this process
  std::vector<int> owners_;       // the process of each shard with records
  std::vector<Member*> present_;  // members with records, by rank
  const ShardTurns* turns_ = nullptr;
  double exchange_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  Member* turn_ = nullptr;  // null: the caller of Run
  bool stop_ = false;
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_SHARD_TEAM_H_
