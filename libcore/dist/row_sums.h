// SPDX-License-Identifier: Apache-2.0
// Sums over the shards of a batch of some rows of a tall table, the gradient of
// an embedding: the rows that a shard has are few, and others than those of the
// next. Numbers of a row are added up in the tree of ShardSum, where shards
// that do not have the row are left out, so that the bits are the same for any
// number of processes.
#ifndef PD_LIBCORE_DIST_ROW_SUMS_H_
#define PD_LIBCORE_DIST_ROW_SUMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/shard_sum.h"

namespace pd {

/// Rows of a table, each once, in ascending order.
struct TableRows {
  std::vector<int64_t> rows;
  std::vector<float> values;  ///< of a row, one behind the other
};

class RowSums {
 public:
  /// Sums over a table of `height` rows of `width` numbers. `processes`
  /// outlives this.
  RowSums(int64_t shards, int64_t height, int64_t width,
          const Communicator* processes);

  /// The next shard of this process, in ascending order: `count` rows, of which
  /// some may be the same; numbers of one row are added up in their order, then
  /// multiplied by `weight`.
  void Add(const int64_t* rows, int64_t count, const float* values,
           float weight);
  /// The next shard has no records.
  void AddNone() { Push({0, next_++, {}}); }

  /// The sums over all shards; all processes call it when all of their shards
  /// are there. The next shard is then the first again.
  absl::StatusOr<TableRows> Finish();

 private:
  // A subtree, as in ShardSum.
  struct Node {
    int64_t level = 0, index = 0;
    TableRows sums;
  };
  void Push(Node node);
  void MergeTop();
  TableRows Sum(const TableRows& a, const TableRows& b) const;
  std::string TextOf(const Node& node) const;
  absl::Status PushText(const std::string& text);

  const int64_t height_, width_;
  const Communicator& processes_;
  const ShardRange own_;
  int64_t next_;  // shard
  std::vector<Node> nodes_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_ROW_SUMS_H_
