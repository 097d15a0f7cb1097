// SPDX-License-Identifier: Apache-2.0
// The part of a NanCheck for the steps of a device: a kernel behind each looks
// through what the step has written, and what it finds is asked for when the
// run has ended, so that nobody waits between steps. Internal to libcore/exec.
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
  /// For `values` values. `place` outlives this.
  static absl::StatusOr<std::unique_ptr<DeviceNonFinite>> Create(
      const DevicePlace* place, size_t values);

  /// Forgets what was found.
  absl::Status Clear();
  /// Has the tensor looked at as value `number`, with others at once: the work
  /// starts with Start, or when there are many.
  absl::Status Add(const Tensor& tensor, size_t number);
  absl::Status Start();
  /// Waits. What was found since Clear, by number.
  absl::StatusOr<const NonFinite*> Found();

 private:
  DeviceNonFinite(const DevicePlace* place, size_t values)
      : place_(place), values_(values) {}

  const DevicePlace* place_;
  const size_t values_;
  std::shared_ptr<void> there_, here_;  // NonFinite by number; here_ is pinned
  NonFiniteRequest request_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_DEVICE_NON_FINITE_H_
