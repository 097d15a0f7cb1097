// SPDX-License-Identifier: Apache-2.0
// The copy in a GPU's memory of a persistable variable whose tensor is the
// host's. Each of the two is brought up to date before its side reads it.
#ifndef PD_LIBCORE_EXEC_DEVICE_VALUE_H_
#define PD_LIBCORE_EXEC_DEVICE_VALUE_H_

#include <memory>

#include "absl/status/status.h"
#include "libcore/device/device.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class DeviceValue {
 public:
  /// Device memory of the size of `host`, whose bytes are the value. `host`
  /// outlives this.
  static absl::StatusOr<std::unique_ptr<DeviceValue>> Create(
      std::shared_ptr<Device> device, Tensor* host);

  void* bytes() const { return bytes_.get(); }
  /// Copies to this side where the other has a newer value. ToHost waits for
  /// the copy, ToDevice does not.
  absl::Status ToDevice();
  absl::Status ToHost();
  /// Records the side that has written.
  void WrittenByHost() { newer_ = Side::kHost; }
  void WrittenByDevice() { newer_ = Side::kDevice; }

 private:
  enum class Side { kNone, kHost, kDevice };
  DeviceValue(std::shared_ptr<Device> device, Tensor* host,
              std::shared_ptr<void> bytes)
      : device_(std::move(device)), host_(host), bytes_(std::move(bytes)) {}

  std::shared_ptr<Device> device_;
  Tensor* host_;
  std::shared_ptr<void> bytes_;
  Side newer_ = Side::kHost;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_DEVICE_VALUE_H_
