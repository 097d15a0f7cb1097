// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/device_non_finite.h"

#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<std::unique_ptr<DeviceNonFinite>> DeviceNonFinite::Create(
    const DevicePlace* place, size_t values) {
  std::unique_ptr<DeviceNonFinite> finder(new DeviceNonFinite(place, values));
  const size_t bytes = values * sizeof(NonFinite);
  PD_ASSIGN_OR_RETURN(finder->there_, place->device->Allocate(bytes));
  PD_ASSIGN_OR_RETURN(finder->here_, place->device->AllocatePinned(bytes));
  PD_RETURN_IF_ERROR(finder->Clear());
  return finder;
}

absl::Status DeviceNonFinite::Clear() {
  return place_->device->Clear(there_.get(), values_ * sizeof(NonFinite));
}

absl::Status DeviceNonFinite::Add(const Tensor& tensor, size_t number) {
  if (tensor.size() == 0) return absl::OkStatus();
  request_.values[request_.count++] = {
      tensor.raw(), tensor.size(),
      static_cast<NonFinite*>(there_.get()) + number, tensor.dtype()};
  return request_.count == NonFiniteRequest::kMost ? Start() : absl::OkStatus();
}

absl::Status DeviceNonFinite::Start() {
  if (request_.count == 0) return absl::OkStatus();
  const absl::Status started =
      place_->find_non_finite(place_->device.get(), request_);
  request_.count = 0;
  return started;
}

absl::StatusOr<const NonFinite*> DeviceNonFinite::Found() {
  Device* device = place_->device.get();
  PD_RETURN_IF_ERROR(
      device->ToHost(here_.get(), there_.get(), values_ * sizeof(NonFinite)));
  PD_RETURN_IF_ERROR(device->Synchronize());
  return static_cast<const NonFinite*>(here_.get());
}

}  // namespace pd
