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

/// How often cuDNN has run its algorithms.
inline int ConvolutionSearches() {
  void* library = dlopen(PD_BINARY_DIR "/tests/device/fakes/good/libcudnn.so.9",
                         RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<int (*)()>(
      library == nullptr ? nullptr : dlsym(library, "fake_cudnn_searches"));
  return count == nullptr ? -1 : count();
}

/// How often cuDNN has run a graph.
inline int GraphRuns() {
  void* library = dlopen(PD_BINARY_DIR "/tests/device/fakes/good/libcudnn.so.9",
                         RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<int (*)()>(
      library == nullptr ? nullptr : dlsym(library, "fake_cudnn_graphs"));
  return count == nullptr ? -1 : count();
}

/// Images that look as if nvcc had made them.
inline std::vector<KernelImage> FakeDriverImages() {
  static const uint32_t kImage[] = {0xba55ed50u, 0};
  return {{"the fake driver's", kImage}};
}

}  // namespace pd

#endif  // PD_TESTS_DEVICE_FAKE_DRIVER_H_
