// SPDX-License-Identifier: Apache-2.0
// Collective operations and messages of a plug-in's device by its driver's xccl
// functions. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/dist/communicator.h"
#include "libcore/ops/collective/message.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugin_device.h"

namespace pd {

enum class Collective {
  kAllReduce,
  kReduce,  // in the other processes than `root`, out = in
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kScatter
};

/// One operation. Addresses are of the device; `out` may be `in` in kAllReduce
/// and kBroadcast. `count` is that of PaddlePaddle's interface: elements of a
/// process, in kAllGather of `in`, in kReduceScatter and kScatter of `out`, in
/// kAllToAll of what goes to one process.
struct CollectiveCall {
  Collective kind = Collective::kAllReduce;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
  Reduction op = Reduction::kSum;  // for the kinds that reduce
  int root = 0;                    // for kReduce, kBroadcast, kScatter
  const void* in = nullptr;
  void* out = nullptr;
};

/// A device together with the other processes of its rings. A driver's function
/// is tried with a few numbers of each type before it is used: where it gives
/// others than the host, as that of a driver for tests may, or refuses the
/// type, the host does the work from then on, and a warning says so.
class PluginCollectives {
 public:
  explicit PluginCollectives(PluginDevice* device) : device_(device) {}
  ~PluginCollectives();
  PluginCollectives(const PluginCollectives&) = delete;
  PluginCollectives& operator=(const PluginCollectives&) = delete;

  /// Whether the driver's table has what the operation needs: a function of its
  /// own, or for kAllToAll and kScatter a group of messages.
  bool Has(Collective kind) const;
  /// Whether it has xccl_send and xccl_recv.
  bool HasMessages() const;
  /// Runs it, in all processes of the ring.
  absl::Status Run(const CollectiveCall& call, const Communicator& ring);
  /// Sends a part of x to process `peer`, which receives it.
  absl::Status Send(const Communicator& ring, int peer, const Tensor& x,
                    const MessagePart& part);
  absl::Status Receive(const Communicator& ring, int peer,
                       const MessagePart& part, Tensor* out);

 private:
  // A group of the driver, and the operations that it has been tried for.
  struct Channel {
    C_CCLComm comm = nullptr;
    bool open = false;
    std::map<std::tuple<Collective, DType, Reduction>, bool> works;
  };
  // A group of this process and another, for messages.
  struct Pair {
    Channel channel;
    std::map<DType, bool> works;
  };
  // Processes that make a group, which speak by the host until there is one.
  struct Party {
    size_t size = 0, rank = 0;
    std::function<absl::Status(void* data, size_t bytes)> share;  // rank 0's
    std::function<absl::StatusOr<bool>(bool mine)> all_say;
  };
  static Party RingParty(const Communicator& ring);
  static Party PairParty(const Communicator& ring, int peer);
  bool HasGroups() const;
  absl::StatusOr<Channel*> ChannelOf(const Communicator& ring);
  absl::StatusOr<C_CCLComm> PairOf(const Communicator& ring, int peer,
                                   DType dtype);
  absl::Status Open(const Party& party, Channel* channel);
  absl::Status Close(Channel* channel);
  absl::StatusOr<bool> Works(const CollectiveCall& call,
                             const Communicator& ring, Channel* channel);
  absl::StatusOr<bool> PairWorks(const Party& party, DType dtype,
                                 C_CCLComm comm);
  void WarnOfHost(const char* names, DType dtype,
                  const absl::Status& called) const;
  absl::Status Call(const CollectiveCall& call, const Communicator& ring,
                    C_CCLComm comm);
  absl::Status CallAllToAll(const CollectiveCall& call,
                            const Communicator& ring, C_CCLComm comm);
  absl::Status CallScatter(const CollectiveCall& call, const Communicator& ring,
                           C_CCLComm comm);
  absl::Status Grouped(const std::function<absl::Status()>& calls);
  absl::Status SendTo(size_t rank, const void* data, int64_t count, DType dtype,
                      C_CCLComm comm);
  absl::Status ReceiveFrom(size_t rank, void* data, int64_t count, DType dtype,
                           C_CCLComm comm);
  absl::Status OnHost(const CollectiveCall& call, const Communicator& ring);

  PluginDevice* device_;
  std::mutex mutex_;
  std::map<const Communicator*, Channel> channels_;
  std::map<std::pair<const Communicator*, int>, Pair> pairs_;  // by peer too
};

/// Adds the collective operators that the device's driver can do.
absl::Status AttachCollectives(PluginDevice* device, OpRegistry* registry);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_
