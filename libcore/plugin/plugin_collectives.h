// SPDX-License-Identifier: Apache-2.0
// Collective operators on a plug-in's device by its driver's xccl functions.
// Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "libcore/base/dtype.h"
#include "libcore/dist/communicator.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugin_device.h"

namespace pd {

enum class Collective { kAllReduce, kBroadcast, kAllGather, kReduceScatter };

/// One operation. Addresses are of the device; `out` may be `in` where both
/// have the same size. `count` is that of PaddlePaddle's interface: elements of
/// a process, in kAllGather of `in`, in kReduceScatter of `out`.
struct CollectiveCall {
  Collective kind = Collective::kAllReduce;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
  Reduction op = Reduction::kSum;  // of the kinds that reduce
  int root = 0;                    // of kBroadcast
  const void* in = nullptr;
  void* out = nullptr;
};

/// A device together with the other processes of its rings.
class PluginCollectives {
 public:
  explicit PluginCollectives(PluginDevice* device) : device_(device) {}
  ~PluginCollectives();
  PluginCollectives(const PluginCollectives&) = delete;
  PluginCollectives& operator=(const PluginCollectives&) = delete;

  /// Whether the driver's table has the function.
  bool Has(Collective kind) const;
  /// Runs it, in all processes of the ring. The first operation of a kind is
  /// tried with a few numbers before: where the driver's function gives others
  /// than the host, as that of a driver for tests may, it is done on the host
  /// from then on, and a warning says so.
  absl::Status Run(const CollectiveCall& call, const Communicator& ring);

 private:
  // The driver's group of a ring; null where it has none.
  struct Channel {
    C_CCLComm comm = nullptr;
    bool open = false;
    std::map<Collective, bool> works;
  };
  absl::StatusOr<Channel*> ChannelOf(const Communicator& ring);
  absl::Status Open(const Communicator& ring, Channel* channel);
  absl::StatusOr<bool> Works(const CollectiveCall& call,
                             const Communicator& ring, Channel* channel);
  absl::Status Call(const CollectiveCall& call, C_CCLComm comm);
  absl::Status OnHost(const CollectiveCall& call, const Communicator& ring);

  PluginDevice* device_;
  std::mutex mutex_;
  std::map<const Communicator*, Channel> channels_;
};

/// Adds the collective operators that the device's driver can do.
absl::Status AttachCollectives(PluginDevice* device, OpRegistry* registry);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_COLLECTIVES_H_
