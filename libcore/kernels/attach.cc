// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/attach.h"

#include <utility>

#include "libcore/base/flags.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/kernels/reorder.h"
#include "libcore/ops/device_place.h"

namespace pd {

absl::Status AttachHostKernels(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AttachCpuKernels(registry));
  PD_RETURN_IF_ERROR(AttachInt8Kernels(registry));
  if (GetFlag<bool>("FLAGS_use_mkldnn"))
    PD_RETURN_IF_ERROR(AttachOnednnKernels(registry));
  registry->SetReorder(&BindReorder);
  return absl::OkStatus();
}

absl::Status AttachAllKernels(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AttachHostKernels(registry));
  return AttachCudaKernels(registry);
}

absl::StatusOr<std::unique_ptr<OpRegistry>> MakeRegistry(
    std::shared_ptr<const DevicePlace> device) {
  auto registry = std::make_unique<OpRegistry>();
  PD_RETURN_IF_ERROR(RegisterAllOps(registry.get()));
  if (device == nullptr || device->is_gpu)
    PD_RETURN_IF_ERROR(AttachAllKernels(registry.get()));
  else
    PD_RETURN_IF_ERROR(AttachHostKernels(registry.get()));
  registry->SetDevice(std::move(device));
  return registry;
}

}  // namespace pd
