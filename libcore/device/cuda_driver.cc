// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cuda_driver.h"

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/dynamic_library.h"

namespace pd {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed ...": the
// first word that is two or three numbers with dots.
std::string KernelModuleRelease() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return "";
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    const bool digits =
        word.find_first_not_of("0123456789.") == absl::string_view::npos;
    if (digits && word.find('.') != absl::string_view::npos)
      return std::string(word);
  }
  return "";
}

absl::Status Start(const DynamicLibrary& library, CudaDriver* driver) {
  driver->path = library.path();
#define PD_BIND(member, name, parameters) \
  PD_RETURN_IF_ERROR(library.Bind(name, &driver->member));
  PD_CUDA_DRIVER(PD_BIND)
#undef PD_BIND
  const CudaResult started = driver->Init(0);
  if (started != kCudaSuccess && started != kCudaNoDevice) {
    const absl::Status reason = driver->Check(started, "cuInit");
    return Unavailable("the NVIDIA driver '%s' does not start: %s",
                       driver->path, reason.message());
  }
  PD_RETURN_IF_ERROR(driver->Check(driver->DriverGetVersion(&driver->version),
                                   "cuDriverGetVersion"));
  driver->release = KernelModuleRelease();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaDriver>> Load() {
  LibraryQuery query;
  query.title = "the NVIDIA driver";
  query.files = {"libcuda.so.1"};
  query.flag = "FLAGS_cuda_dir";
  query.folders = {"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64",
                   "/usr/lib/x86_64-linux-gnu/nvidia/current"};
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library,
                      DynamicLibrary::Open(query));
  auto driver = std::make_unique<CudaDriver>();
  PD_RETURN_IF_ERROR(Start(library, driver.get()));
  return driver;
}

}  // namespace

absl::Status CudaDriver::Check(CudaResult result, const char* what) const {
  if (result == kCudaSuccess) return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(result, &name) != kCudaSuccess) name = nullptr;
  if (GetErrorString(result, &text) != kCudaSuccess) text = nullptr;
  const std::string message =
      absl::StrCat(what, ": ", name != nullptr ? name : "error ",
                   name != nullptr ? "" : absl::StrCat(result),
                   text != nullptr ? absl::StrCat(" (", text, ")") : "");
  if (result == kCudaOutOfMemory) return ResourceExhausted("%s", message);
  return Unknown("%s", message);
}

absl::StatusOr<const CudaDriver*> LoadCudaDriver() {
  static const auto* const kDriver =
      new absl::StatusOr<std::unique_ptr<CudaDriver>>(Load());
  if (!kDriver->ok()) return kDriver->status();
  return kDriver->value().get();
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace pd
