// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/gpu.h"

#include <map>
#include <mutex>

#include "libcore/base/error.h"
#include "libcore/kernels/cuda/place.h"

namespace pd {
namespace inference {

absl::StatusOr<std::shared_ptr<const DevicePlace>> GpuNumber(int index) {
  if (index < 0)
    return InvalidArgument("GPU %d: expected a number of 0 or more", index);
  static std::mutex* const mutex = new std::mutex;
  static auto* const open =
      new std::map<int, std::shared_ptr<const DevicePlace>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto found = open->find(index);
  if (found != open->end()) return found->second;
  auto place = OpenGpu(index);
  if (place.ok()) (*open)[index] = *place;
  return place;
}

int64_t GpuMemory(const DevicePlace* place) {
  return place == nullptr ? 0
                          : static_cast<int64_t>(GpuOf(*place).memory_bytes);
}

}  // namespace inference
}  // namespace pd
