// SPDX-License-Identifier: Apache-2.0
// Collective operations on elements. Reductions have one order whatever the
// engine: each process adds up its share of the elements of all, in the order
// of a binary tree over ranks, and hands the sums out. They move as many bytes
// as a ring does, and every process ends with the same bits.
#ifndef PD_LIBCORE_DIST_COMMUNICATOR_H_
#define PD_LIBCORE_DIST_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/dist/transport.h"

namespace pd {

enum class Reduction { kSum, kProd, kMax, kMin };

/// into[i] = into[i] (op) other[i] for `count` elements; fp16 and bf16 are
/// computed in float32 and rounded, fp16 towards zero as in PaddlePaddle.
/// Unimplemented for other dtypes than numbers.
absl::Status Reduce(Reduction op, DType dtype, int64_t count, const void* other,
                    void* into);

/// Reduces parts[0], parts[1], ... into the first in the order of a binary
/// tree: neighbours first, then neighbours of these. Overwrites all parts.
absl::Status ReduceTree(Reduction op, DType dtype, int64_t count,
                        const std::vector<void*>& parts);

class Communicator {
 public:
  /// A communicator of one process: every operation is a copy.
  Communicator() = default;
  /// `transport` outlives the communicator.
  explicit Communicator(Transport* transport) : transport_(transport) {}

  int rank() const { return transport_ == nullptr ? 0 : transport_->rank(); }
  int size() const { return transport_ == nullptr ? 1 : transport_->size(); }

  /// `out` may be `in`. Counts are of elements, the same in all processes.
  absl::Status AllReduce(Reduction op, DType dtype, int64_t count,
                         const void* in, void* out) const;
  /// `in` holds size() * count elements; `out` gets the sums of those that
  /// stand at this rank.
  absl::Status ReduceScatter(Reduction op, DType dtype, int64_t count,
                             const void* in, void* out) const;
  absl::Status Broadcast(int root, void* data, size_t bytes) const;
  absl::Status AllGather(const void* in, size_t bytes, void* out) const;
  absl::Status AllToAll(const void* in, const std::vector<size_t>& sends,
                        void* out, const std::vector<size_t>& receives) const;
  absl::Status Send(int to, const void* data, size_t bytes) const;
  absl::Status Receive(int from, void* data, size_t bytes) const;
  absl::Status Barrier() const;
  /// One text of each process, in rank order.
  absl::StatusOr<std::vector<std::string>> GatherTexts(
      const std::string& text) const;

 private:
  absl::Status CheckRank(int rank, const char* what) const;

  Transport* transport_ = nullptr;  // null: one process
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_COMMUNICATOR_H_
