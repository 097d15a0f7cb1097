// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/device_look.h"

#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<std::unique_ptr<DeviceLook>> DeviceLook::Create(
    const DevicePlace* place, size_t values) {
  std::unique_ptr<DeviceLook> look(new DeviceLook(place, values));
  const size_t bytes = values * sizeof(BadNumbers);
  PD_ASSIGN_OR_RETURN(look->there_, place->device->Allocate(bytes));
  PD_ASSIGN_OR_RETURN(look->here_, place->device->AllocatePinned(bytes));
  PD_RETURN_IF_ERROR(look->Clear());
  return look;
}

absl::Status DeviceLook::Clear() {
  return place_->device->Clear(there_.get(), values_ * sizeof(BadNumbers));
}

absl::Status DeviceLook::Add(const Tensor& tensor, size_t number) {
  if (tensor.size() == 0) return absl::OkStatus();
  request_.values[request_.count++] = {
      tensor.raw(), tensor.size(),
      static_cast<BadNumbers*>(there_.get()) + number, tensor.dtype()};
  return request_.count == LookRequest::kMost ? Start() : absl::OkStatus();
}

absl::Status DeviceLook::Start() {
  if (request_.count == 0) return absl::OkStatus();
  const absl::Status started = place_->look(place_->device.get(), request_);
  request_.count = 0;
  return started;
}

absl::StatusOr<const BadNumbers*> DeviceLook::Found() {
  CudaDevice* device = place_->device.get();
  PD_RETURN_IF_ERROR(
      device->ToHost(here_.get(), there_.get(), values_ * sizeof(BadNumbers)));
  PD_RETURN_IF_ERROR(device->Synchronize());
  return static_cast<const BadNumbers*>(here_.get());
}

}  // namespace pd
