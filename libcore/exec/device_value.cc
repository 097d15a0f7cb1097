// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/device_value.h"

#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<std::unique_ptr<DeviceValue>> DeviceValue::Create(
    std::shared_ptr<Device> device, Tensor* host) {
  PD_ASSIGN_OR_RETURN(std::shared_ptr<void> bytes,
                      device->Allocate(host->bytes()));
  return std::unique_ptr<DeviceValue>(
      new DeviceValue(std::move(device), host, std::move(bytes)));
}

absl::Status DeviceValue::ToDevice() {
  if (newer_ != Side::kHost) return absl::OkStatus();
  PD_RETURN_IF_ERROR(
      device_->ToDevice(bytes_.get(), host_->raw(), host_->bytes()));
  newer_ = Side::kNone;
  return absl::OkStatus();
}

absl::Status DeviceValue::ToHost() {
  if (newer_ != Side::kDevice) return absl::OkStatus();
  PD_RETURN_IF_ERROR(
      device_->ToHost(host_->raw(), bytes_.get(), host_->bytes()));
  PD_RETURN_IF_ERROR(device_->Synchronize());
  newer_ = Side::kNone;
  return absl::OkStatus();
}

}  // namespace pd
