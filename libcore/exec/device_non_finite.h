// SPDX-License-Identifier: Apache-2.0
// Counts NaN and infinities in tensors of a device, for NanCheck: kernels
// behind the steps count them there, and the counts are copied to the host
// once, when the run has ended, so that no step waits for the host. Internal to
// libcore/exec.
#ifndef PD_LIBCORE_EXEC_DEVICE_NON_FINITE_H_
#define PD_LIBCORE_EXEC_DEVICE_NON_FINITE_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/device_place.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class DeviceNonFinite {
 public:
  /// Counters for values 0 to `values` - 1. `place` outlives this.
  static absl::StatusOr<std::unique_ptr<DeviceNonFinite>> Create(
      const DevicePlace* place, size_t values);

  /// Sets all counters to 0.
  absl::Status Clear();
  /// Appends the tensor to the next kernel, which counts for value `number`.
  /// The kernel takes several tensors; Start, or Add when it is full, launches
  /// it.
  absl::Status Add(const Tensor& tensor, size_t number);
  absl::Status Start();
  /// Waits for the kernels, and gives the counters since Clear, by number.
  absl::StatusOr<const NonFinite*> Found();

 private:
  DeviceNonFinite(const DevicePlace* place, size_t values)
      : place_(place), values_(values) {}

  const DevicePlace* place_;
  const size_t values_;
  // NonFinite by number, on the device and in pinned memory of the host.
  std::shared_ptr<void> there_, here_;
  NonFiniteRequest request_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_DEVICE_NON_FINITE_H_
