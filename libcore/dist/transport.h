// SPDX-License-Identifier: Apache-2.0
// Bytes between processes. A transport is one communicator of an existing
// engine, Gloo or MPI, reduced to the few operations from which
// communicator.h makes the rest. An engine moves bytes and knows no dtypes, so
// sums have the same order, and the same bits, over every engine.
#ifndef PD_LIBCORE_DIST_TRANSPORT_H_
#define PD_LIBCORE_DIST_TRANSPORT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

/// The processes of a transport have the numbers 0 to size() - 1, their ranks.
/// Every function but Send and Receive is called by all of them, in the same
/// order, and returns when the bytes have arrived. Errors: Unavailable where a
/// process is gone or does not answer in time.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual absl::Status Broadcast(int root, void* data, size_t bytes) = 0;
  /// `out` has room for size() * bytes, in rank order.
  virtual absl::Status AllGather(const void* in, size_t bytes, void* out) = 0;
  /// Sends sends[r] bytes to rank r and receives receives[r] bytes from it.
  /// Both buffers hold their parts in rank order, without gaps.
  virtual absl::Status AllToAll(const void* in,
                                const std::vector<size_t>& sends, void* out,
                                const std::vector<size_t>& receives) = 0;
  virtual absl::Status Send(int to, const void* data, size_t bytes) = 0;
  virtual absl::Status Receive(int from, void* data, size_t bytes) = 0;
  virtual absl::Status Barrier() = 0;

  /// A transport among some of the processes, in the order of `ranks`, which
  /// holds this process's. The members alone call it, with the same `name`,
  /// which no other group has.
  virtual absl::StatusOr<std::unique_ptr<Transport>> Group(
      const std::vector<int>& ranks, const std::string& name) = 0;
};

/// How the processes of a run find each other.
struct Meeting {
  int rank = 0;
  int size = 1;
  /// Gloo: where rank 0 listens, and on which address this process does.
  std::string host, own_address;
  int port = 0;
  double rendezvous_seconds = 60;  ///< until all are there
  /// A process that has shown no sign of life for so long counts as gone.
  double silence_seconds = 10;
  /// The longest that an operation waits for a process that lives.
  double operation_seconds = 1800;
};

/// All processes, connected, with a watch over them.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual Transport& all() = 0;
  /// Calls `lost` once, on a thread of the engine, when a process is gone: a
  /// sentence that names its rank and host.
  virtual void Watch(std::function<void(const std::string&)> lost) = 0;
  /// After an error of the transport: the sentence about the process that is
  /// gone, or "" when all seem to live.
  virtual std::string WhoIsGone() = 0;
  /// The end of a run that went well: waits for the others. Without it the
  /// destructor leaves at once, and the others find this process gone.
  virtual absl::Status Leave() = 0;
};

/// The function that an engine's library exports under kMakeEngine. The result
/// is the caller's; null: `error` says why.
using MakeEngineFn = Engine* (*)(const Meeting& meeting, absl::Status* error);
constexpr char kMakeEngine[] = "pd_make_engine";

}  // namespace pd

#endif  // PD_LIBCORE_DIST_TRANSPORT_H_
