// SPDX-License-Identifier: Apache-2.0
// Sums over the shards of a batch, in the order of one binary tree over shard
// numbers, whatever process computes which shards: neighbours first, then
// neighbours of these. So 1, 2, 3, ... processes come to the same bits. Each
// process adds up the subtrees that lie within its own shards; then each gets
// its share of the numbers of all subtrees from the others, adds them up in the
// tree's order, and hands the sums out. That moves about as many bytes as a
// ring all-reduce does.
#ifndef PD_LIBCORE_DIST_SHARD_SUM_H_
#define PD_LIBCORE_DIST_SHARD_SUM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"

namespace pd {

/// The shards [begin, end) of process `rank` of `size`; empty where there are
/// fewer shards than processes.
struct ShardRange {
  int64_t begin = 0, end = 0;
  static ShardRange Of(int64_t shards, int rank, int size);
};

class ShardSum {
 public:
  /// `count` float32 numbers of each shard. `processes` outlives this.
  ShardSum(int64_t shards, int64_t count, const Communicator* processes);
  /// Each process gets the sums of its own part alone: of the numbers from
  /// `bounds[rank]` to `bounds[rank + 1]`. The last bound is their count.
  ShardSum(int64_t shards, std::vector<int64_t> bounds,
           const Communicator* processes);

  /// The most bytes that one of `size` processes sends for the sums of a batch.
  static int64_t BytesSent(int64_t shards, int64_t count, int size);

  /// Room for the numbers of this process's next shard, in ascending order.
  float* NextShard();
  /// The numbers of that shard are there. A shard without records is left out
  /// of all sums: `present` false.
  void Add(bool present);
  /// After the last shard of this process: whether each shard of the batch has
  /// records. Processes ask together.
  absl::StatusOr<std::vector<uint8_t>> GatherPresent() const;
  /// The sums over the shards that `present` says, which is what GatherPresent
  /// gives here or gave for other numbers of the same batch; the same in all
  /// processes, or this one's part. Valid until NextShard.
  absl::StatusOr<const float*> Finish(const std::vector<uint8_t>& present);

  /// Bytes of the sums that Finish has given.
  int64_t held_bytes() const;

  /// This process has added all of its shards.
  bool complete() const { return leaf_ == nullptr && next_ == own_.end; }

 private:
  // A subtree: 2^level shards from index * 2^level on.
  struct Node {
    int level = 0;
    int64_t index = 0;
    float* data = nullptr;  // null: no shard of it is present
  };
  static std::vector<Node> SubtreesOf(const ShardRange& range);
  ShardSum(int64_t shards, std::vector<int64_t> bounds, int64_t count,
           bool parts, const Communicator* processes);
  const float* KeepPart(const float* sums, int64_t count);
  void Push(Node node, int64_t count, std::vector<Node>* stack);
  void MergeTop(int64_t count, std::vector<Node>* stack);
  void CompleteTree(int64_t count, std::vector<Node>* stack);
  const float* Sends();
  // Numbers from bounds_[r] on that process r adds up.
  int64_t PartOf(size_t r) const { return bounds_[r + 1] - bounds_[r]; }
  absl::StatusOr<const float*> Exchange(const std::vector<uint8_t>& present);
  float* TakeBuffer();

  const int64_t shards_, count_;
  const Communicator& processes_;
  const bool parts_;  // each process needs its own part alone
  // Between the parts that processes add up. Where all need all, parts have
  // one size, and the last ends behind the numbers.
  std::vector<int64_t> bounds_;
  const ShardRange own_;
  std::vector<std::vector<Node>> subtrees_;  // of every process
  std::vector<uint8_t> present_;             // of own shards
  int64_t next_ = 0;                         // shard
  float* leaf_ = nullptr;                    // of NextShard
  std::vector<Node> nodes_;                  // of this process
  std::vector<std::vector<float>> buffers_;  // of count_ numbers
  std::vector<float*> free_;
  std::vector<float> sends_, receives_, sums_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_SHARD_SUM_H_
