// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/place.h"

#include "libcore/base/status_macros.h"
#include "libcore/device/cublaslt.h"
#include "libcore/device/gpu_support.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"

namespace pd {

absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenGpu(int index) {
  PD_ASSIGN_OR_RETURN(const GpuInfo gpu, FindGpu(index));
  PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  PD_RETURN_IF_ERROR(CheckGpu(gpu, driver->version, BuiltCudaVersion()));
  return MakePlace(index, KernelImages());
}

const GpuInfo& GpuOf(const DevicePlace& place) {
  return static_cast<const CudaDevice&>(*place.device).info();
}

absl::StatusOr<std::shared_ptr<const DevicePlace>> MakePlace(
    int index, const std::vector<KernelImage>& images) {
  auto place = std::make_shared<DevicePlace>();
  PD_ASSIGN_OR_RETURN(place->device, CudaDevice::Open(index, images));
  // Without it every product would be the CPU's: better no GPU than a slow one.
  // A program with convolutions says itself that cuDNN is missing.
  PD_RETURN_IF_ERROR(LoadCublasLt().status());
  place->find_non_finite = cuda::FindNonFinite;
  place->reorder = cuda::BindReorder;
  return place;
}

}  // namespace pd
