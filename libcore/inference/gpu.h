// SPDX-License-Identifier: Apache-2.0
// The GPUs of the process, each started once.
#ifndef PD_LIBCORE_INFERENCE_GPU_H_
#define PD_LIBCORE_INFERENCE_GPU_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "libcore/ops/device_place.h"

namespace pd {
namespace inference {

/// Starts GPU `index` the first time. OpenGpu's errors.
absl::StatusOr<std::shared_ptr<const DevicePlace>> GpuNumber(int index);

/// Bytes of its memory; 0 for null.
int64_t GpuMemory(const DevicePlace* place);

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_GPU_H_
