// SPDX-License-Identifier: Apache-2.0
// Device memory for values whose sizes are known only when they are made. What
// is given back is given out again at once: all work is in one stream, so what
// is done later with the bytes comes after what was done with them before.
#ifndef PD_LIBCORE_DEVICE_DEVICE_POOL_H_
#define PD_LIBCORE_DEVICE_DEVICE_POOL_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "libcore/device/device.h"

namespace pd {

class DevicePool {
 public:
  explicit DevicePool(std::shared_ptr<Device> device);

  /// Memory of this size at least, 256-byte aligned, that goes back with the
  /// last reference, which may outlive the pool. Nobody waits. When the device
  /// has no more, what lies idle is freed first; then ResourceExhausted.
  absl::StatusOr<std::shared_ptr<void>> Take(size_t bytes);

  /// The address is in memory that was taken.
  bool Holds(const void* address) const;
  /// The size of the memory that the device has given.
  size_t bytes() const;
  /// The part of it that is taken.
  size_t bytes_taken() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_DEVICE_POOL_H_
