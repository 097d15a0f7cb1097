// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, and whether this build can compute on them.
#ifndef PD_LIBCORE_DEVICE_GPU_LIST_H_
#define PD_LIBCORE_DEVICE_GPU_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cuda_driver.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {

struct GpuInfo {
  int index = 0;  ///< N of gpu:N; CUDA_VISIBLE_DEVICES orders and hides
  std::string name;
  int64_t memory_bytes = 0;
  int major = 0, minor = 0;  ///< of its compute capability
  int multiprocessors = 0;

  int capability() const { return major * 10 + minor; }
};

/// Facts for --devices and --version. A missing one is a status that says so.
struct GpuList {
  absl::StatusOr<const CudaDriver*> driver;
  std::vector<GpuInfo> gpus;
  absl::Status error;  ///< of a driver that is there but does not list them
  absl::StatusOr<LibraryVersion> cublaslt, cudnn;
};

/// Asks the driver and the libraries; starts nothing on a GPU.
GpuList ListGpus();

/// GPU `index`. Unavailable when the driver is missing, shows no GPU, or has
/// fewer of them.
absl::StatusOr<GpuInfo> FindGpu(int index);

/// Why this build cannot compute on the GPU, by its capability and by what the
/// driver speaks; OK when it can. `built` is BuiltCudaVersion().
absl::Status CheckGpu(const GpuInfo& gpu, int driver_version, int built);

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_GPU_LIST_H_
