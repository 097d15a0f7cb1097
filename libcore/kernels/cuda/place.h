// SPDX-License-Identifier: Apache-2.0
// A GPU with everything that this build can compute on it.
#ifndef PD_LIBCORE_KERNELS_CUDA_PLACE_H_
#define PD_LIBCORE_KERNELS_CUDA_PLACE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/device/cuda_device.h"
#include "libcore/ops/device_place.h"

namespace pd {

/// Starts GPU `index`. Unavailable says what is missing: the driver, the GPU,
/// or kernels for it in this build.
absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenGpu(int index);

/// The same with these kernels, whatever this build has: for tests.
absl::StatusOr<std::shared_ptr<const DevicePlace>> MakePlace(
    int index, const std::vector<KernelImage>& images);

/// The facts about the GPU of a place that is one.
const GpuInfo& GpuOf(const DevicePlace& place);

/// The kernels of this build, as nvcc wrote them; empty without nvcc.
const std::vector<KernelImage>& KernelImages();

}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CUDA_PLACE_H_
