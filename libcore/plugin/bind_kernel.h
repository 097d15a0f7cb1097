// SPDX-License-Identifier: Apache-2.0
// Binds a plug-in's kernel to an op of a plan. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_BIND_KERNEL_H_
#define PD_LIBCORE_PLUGIN_BIND_KERNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/op_def.h"
#include "libcore/plugin/kernel_objects.h"

namespace pd {

/// The side on which a kernel computes: the host, or a plug-in's device.
struct KernelSide {
  std::string backend;
  int id = 0;
  AllocateFn allocate;  // null: the host's memory
  /// Copies within the side's memory.
  std::function<absl::Status(void* to, const void* from, size_t bytes)> copy;
  /// Before a kernel runs: makes the device the current one, gives its stream.
  std::function<absl::StatusOr<PD_Stream>()> enter;

  bool on_device() const { return allocate != nullptr; }
};

/// Remembers the defaults of an op's attributes: an op with another value of an
/// attribute that a kernel is not given is refused.
void KeepSchema(const OpDef& def);

/// Binds the kernel of that side that suits the op; Unimplemented says why none
/// does.
absl::StatusOr<Step> BindKernel(BindContext* context,
                                std::shared_ptr<const KernelSide> side);

/// The same on the host.
absl::StatusOr<Step> BindHostKernel(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_BIND_KERNEL_H_
