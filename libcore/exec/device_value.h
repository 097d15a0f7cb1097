// SPDX-License-Identifier: Apache-2.0
// A persistable variable of which the host and a GPU have a copy each. The
// copies are brought up to date when a side wants to read.
#ifndef PD_LIBCORE_EXEC_DEVICE_VALUE_H_
#define PD_LIBCORE_EXEC_DEVICE_VALUE_H_

#include <memory>

#include "absl/status/status.h"
#include "libcore/device/cuda_device.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class DeviceValue {
 public:
  /// Device memory of the size of `host`, whose bytes are the value. `host`
  /// outlives this.
  static absl::StatusOr<std::unique_ptr<DeviceValue>> Create(
      std::shared_ptr<CudaDevice> device, Tensor* host);

  void* bytes() const { return bytes_.get(); }
  /// Copies to the side that is asked for where the other has a newer value.
  /// On the host the bytes are there when it returns.
  absl::Status ToDevice();
  absl::Status ToHost();
  /// Records the side that has written.
  void WrittenByHost() { newer_ = Side::kHost; }
  void WrittenByDevice() { newer_ = Side::kDevice; }

 private:
  enum class Side { kNone, kHost, kDevice };
  DeviceValue(std::shared_ptr<CudaDevice> device, Tensor* host,
              std::shared_ptr<void> bytes)
      : device_(std::move(device)), host_(host), bytes_(std::move(bytes)) {}

  std::shared_ptr<CudaDevice> device_;
  Tensor* host_;
  std::shared_ptr<void> bytes_;
  Side newer_ = Side::kHost;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_DEVICE_VALUE_H_
