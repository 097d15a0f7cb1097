// SPDX-License-Identifier: Apache-2.0
// The resources of a plan on a device, as implementations of ops see them.
#ifndef PD_LIBCORE_OPS_DEVICE_BINDING_H_
#define PD_LIBCORE_OPS_DEVICE_BINDING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/device/device.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// Resources that an implementation is given besides its op.
class DeviceBinding {
 public:
  virtual ~DeviceBinding() = default;
  virtual Device* device() = 0;
  /// One int32 in device memory, 0 when a run begins: a run in which a kernel
  /// sets it fails with InvalidArgument and `message` after its last step.
  virtual absl::StatusOr<int32_t*> ErrorFlag(std::string message) = 0;
  /// Device memory for as long as the plan.
  virtual absl::StatusOr<void*> Keep(size_t bytes) = 0;
  /// The value of a persistable variable where the host can read it, for what
  /// is made of a constant once; null for other tensors, and without a value.
  virtual absl::StatusOr<const Tensor*> ValueOf(const Tensor* tensor) = 0;
  /// Seed and step of the run in device memory, there before its first step. A
  /// kernel that follows the pointer does the same work in every run, so it can
  /// be captured; numbers of a RunContext in its arguments would stay those of
  /// the run that was captured.
  virtual absl::StatusOr<const uint64_t*> SeedAndStep() = 0;
  /// The row numbers of selected rows, one for each of their rows: as many as
  /// dim(0), in device memory for as long as the plan.
  virtual absl::StatusOr<int64_t*> RowsOf(const Tensor* selected) = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DEVICE_BINDING_H_
