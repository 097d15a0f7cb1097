// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/gpu_list.h"

#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/gpu_support.h"

namespace pd {
namespace {

absl::StatusOr<GpuInfo> Describe(const CudaDriver& driver, int index) {
  GpuInfo gpu;
  gpu.index = index;
  CudaOrdinal ordinal = 0;
  PD_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGet(&ordinal, index), "cuDeviceGet"));
  std::array<char, 256> name{};
  PD_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetName(name.data(), name.size() - 1, ordinal),
                   "cuDeviceGetName"));
  gpu.name = name.data();
  size_t bytes = 0;
  PD_RETURN_IF_ERROR(
      driver.Check(driver.DeviceTotalMem(&bytes, ordinal), "cuDeviceTotalMem"));
  gpu.memory_bytes = static_cast<int64_t>(bytes);
  const auto attribute = [&](int which, int* value) {
    return driver.Check(driver.DeviceGetAttribute(value, which, ordinal),
                        "cuDeviceGetAttribute");
  };
  PD_RETURN_IF_ERROR(attribute(kCudaCapabilityMajor, &gpu.major));
  PD_RETURN_IF_ERROR(attribute(kCudaCapabilityMinor, &gpu.minor));
  PD_RETURN_IF_ERROR(attribute(kCudaMultiprocessors, &gpu.multiprocessors));
  return gpu;
}

absl::StatusOr<int> CountGpus(const CudaDriver& driver) {
  int count = 0;
  const CudaResult result = driver.DeviceGetCount(&count);
  // A driver without a GPU has not started, so it may say just that.
  if (result == kCudaNoDevice) return 0;
  PD_RETURN_IF_ERROR(driver.Check(result, "cuDeviceGetCount"));
  return count;
}

absl::Status AppendGpus(const CudaDriver& driver, std::vector<GpuInfo>* gpus) {
  PD_ASSIGN_OR_RETURN(const int count, CountGpus(driver));
  for (int i = 0; i < count; ++i) {
    PD_ASSIGN_OR_RETURN(GpuInfo gpu, Describe(driver, i));
    gpus->push_back(std::move(gpu));
  }
  return absl::OkStatus();
}

// CUDA_VISIBLE_DEVICES hides GPUs: who finds none wants to know.
std::string Hidden() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr
             ? ""
             : absl::StrCat(" (CUDA_VISIBLE_DEVICES is '", visible, "')");
}

}  // namespace

GpuList ListGpus() {
  GpuList list{
      LoadCudaDriver(), {}, absl::OkStatus(), FindCublasLt(), FindCudnn()};
  if (list.driver.ok()) list.error = AppendGpus(**list.driver, &list.gpus);
  return list;
}

absl::StatusOr<GpuInfo> FindGpu(int index) {
  PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  PD_ASSIGN_OR_RETURN(const int count, CountGpus(*driver));
  if (count == 0)
    return Unavailable("the NVIDIA driver '%s' shows no GPU%s", driver->path,
                       Hidden());
  if (index >= count)
    return Unavailable("there is no gpu:%d; expected gpu:0%s%s", index,
                       count == 1 ? "" : absl::StrCat(" to gpu:", count - 1),
                       Hidden());
  return Describe(*driver, index);
}

absl::Status CheckGpu(const GpuInfo& gpu, int driver_version, int built) {
  if (built == 0) return Unavailable("this build has no kernels for GPUs");
  if (gpu.capability() < kOldestCapability) {
    const GpuGeneration* row = FindGeneration(gpu.major, gpu.minor);
    return Unavailable(
        "%s has compute capability %d.%d%s; expected %d.%d or above", gpu.name,
        gpu.major, gpu.minor,
        row == nullptr
            ? std::string()
            : absl::StrCat(" (", row->architecture,
                           "; PaddlePaddle's packages: ", row->packages, ")"),
        kOldestCapability / 10, kOldestCapability % 10);
  }
  // A driver runs what any CUDA of its major version has compiled.
  if (driver_version / 1000 < built / 1000)
    return Unavailable(
        "the NVIDIA driver is too old: it runs CUDA %s; expected %d.0 or "
        "above, which this build's kernels are compiled by",
        CudaVersionText(driver_version), built / 1000);
  return absl::OkStatus();
}

}  // namespace pd
