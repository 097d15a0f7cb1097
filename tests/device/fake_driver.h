// SPDX-License-Identifier: Apache-2.0
// The fake driver (fake_cuda.cc), in this process. It has the kernels,
// so no nvcc is needed.
#ifndef PD_TESTS_DEVICE_FAKE_DRIVER_H_
#define PD_TESTS_DEVICE_FAKE_DRIVER_H_

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/flags.h"
#include "libcore/device/cuda_device.h"

namespace pd {

/// Has NVIDIA's libraries looked for among the fakes.
inline absl::Status UseFakeDriver() {
  const std::string good =
      std::string(PD_BINARY_DIR) + "/tests/device/fakes/good";
  absl::Status status = SetFlag("cuda_dir", good);
  status.Update(SetFlag("cudnn_dir", good));
  status.Update(SetFlag("cupti_dir", good));
  return status;
}

/// How often captured work was started.
inline int CapturedRuns() {
  void* library = dlopen(PD_BINARY_DIR "/tests/device/fakes/good/libcuda.so.1",
                         RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<int (*)()>(
      library == nullptr ? nullptr : dlsym(library, "fake_cuda_graphs"));
  return count == nullptr ? -1 : count();
}

/// A count that the fake cuDNN keeps; 0 before it is loaded.
inline int CudnnCount(const char* name) {
  void* library = dlopen(PD_BINARY_DIR "/tests/device/fakes/good/libcudnn.so.9",
                         RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<int (*)()>(
      library == nullptr ? nullptr : dlsym(library, name));
  return count == nullptr ? 0 : count();
}

/// How often cuDNN has run a graph, and one of several operations.
inline int GraphRuns() { return CudnnCount("fake_cudnn_runs"); }
inline int FusedGraphRuns() { return CudnnCount("fake_cudnn_fused_runs"); }
/// How many plans of graphs cuDNN was asked for.
inline int GraphPlans() { return CudnnCount("fake_cudnn_plans"); }

/// Images that look as if nvcc had made them.
inline std::vector<KernelImage> FakeDriverImages() {
  static const uint32_t kImage[] = {0xba55ed50u, 0};
  return {{"the fake driver's", kImage}};
}

}  // namespace pd

#endif  // PD_TESTS_DEVICE_FAKE_DRIVER_H_
