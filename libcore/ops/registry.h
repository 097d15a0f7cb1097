// SPDX-License-Identifier: Apache-2.0
// The table of op types: an object that is passed by reference. It is filled by
// RegisterAllOps (generated from the list in libcore/ops/CMakeLists.txt) and by
// the kernel rooms, never by static initialisers; plug-ins add to it too.
#ifndef PD_LIBCORE_OPS_REGISTRY_H_
#define PD_LIBCORE_OPS_REGISTRY_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/op_def.h"

namespace pd {

struct DevicePlace;
class World;

/// Makes the step that copies `from` to `to`, which differ in layout only.
using BindReorderFn = absl::StatusOr<Step> (*)(Tensor* from, Tensor* to);

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  /// AlreadyExists for a type that is there.
  absl::Status Add(OpDef def);
  /// Adds an implementation to a type that is there; NotFound otherwise.
  absl::Status AddImplementation(absl::string_view type,
                                 Implementation implementation);

  /// Null when there is no such op.
  const OpDef* Find(absl::string_view type) const;
  /// Find, or Unimplemented naming the type and the nearest one that exists.
  absl::StatusOr<const OpDef*> Get(absl::string_view type) const;
  /// In name order.
  std::vector<const OpDef*> All() const;

  /// The GPU that sessions over this registry compute on; null, as it is at
  /// first: the CPU.
  void SetDevice(std::shared_ptr<const DevicePlace> device) {
    device_ = std::move(device);
  }
  const std::shared_ptr<const DevicePlace>& device() const { return device_; }

  /// The processes with which plans over this registry work together; null, as
  /// it is at first: none. The registry does not own them.
  void SetWorld(const World* world) { world_ = world; }
  const World* world() const { return world_; }

  /// How layouts are changed; null: by plain loops.
  void SetReorder(BindReorderFn bind) { reorder_ = bind; }
  BindReorderFn reorder() const { return reorder_; }

 private:
  std::map<std::string, std::unique_ptr<OpDef>> ops_;
  BindReorderFn reorder_ = nullptr;
  std::shared_ptr<const DevicePlace> device_;
  const World* world_ = nullptr;
};

/// Every op with its reference kernel alone (generated); see MakeRegistry.
absl::Status RegisterAllOps(OpRegistry* registry);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_REGISTRY_H_
