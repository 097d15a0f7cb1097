// SPDX-License-Identifier: Apache-2.0
// Sums over shards of numbers that become known little by little: they lie in
// buckets, and each bucket travels, on a thread of its own, as soon as it is
// full, while the numbers of the others are computed. The sums are those of
// ShardSum, so the number and the sizes of buckets change no bit.
#ifndef PD_LIBCORE_DIST_BUCKET_SUMS_H_
#define PD_LIBCORE_DIST_BUCKET_SUMS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/shard_sum.h"

namespace pd {

class BucketSums {
 public:
  /// `counts[b]` float32 numbers of each shard are in bucket b. `processes`
  /// outlives this; while buckets travel, nothing else may use it.
  BucketSums(int64_t shards, const std::vector<int64_t>& counts,
             const Communicator* processes);
  /// Each process gets the sums of its own part of bucket b alone, as
  /// `parts[b]` says (see ShardSum), and all where that is empty.
  BucketSums(int64_t shards, const std::vector<int64_t>& counts,
             const std::vector<std::vector<int64_t>>& parts,
             const Communicator* processes);
  /// Every bucket that a process has begun to fill is finished before.
  ~BucketSums();
  BucketSums(const BucketSums&) = delete;
  BucketSums& operator=(const BucketSums&) = delete;

  /// Room for the bucket's numbers of this process's next shard, in ascending
  /// order.
  float* NextShard(size_t bucket) { return sums_[bucket]->NextShard(); }
  /// The bucket's numbers of that shard are there. After the last shard of this
  /// process the bucket travels when the buckets before it have. A shard
  /// without records (`present` false) is left out of all sums.
  void Add(size_t bucket, bool present);
  /// Waits for the sums of the bucket, the same in all processes. Valid until
  /// its NextShard. Buckets are asked for in ascending order, each once.
  absl::StatusOr<const float*> Finish(size_t bucket);

  /// Called on the thread on which a bucket travels, around `travel`, which it
  /// has to call. Set before the first Add.
  using Around =
      std::function<void(size_t bucket, const std::function<void()>& travel)>;
  void set_around(Around around);

  /// How long buckets have travelled, waiting for other processes included,
  /// while nobody waited for them or while Finish did.
  double exchange_seconds() const;
  /// Bytes of sums that Finish has given.
  int64_t held_bytes() const;

 private:
  void Work();
  absl::StatusOr<const float*> Sum(size_t bucket);

  std::vector<std::unique_ptr<ShardSum>> sums_;
  std::vector<uint8_t> present_;  // shards of this batch
  std::vector<absl::StatusOr<const float*>> results_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Around around_;
  std::vector<uint8_t> full_;  // by bucket, of this batch
  size_t done_ = 0;            // buckets of this batch that have travelled
  bool stop_ = false;
  double exchange_seconds_ = 0;
  std::thread thread_;  // none for a process that is alone
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_BUCKET_SUMS_H_
