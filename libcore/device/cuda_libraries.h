// SPDX-License-Identifier: Apache-2.0
// The versions of NVIDIA's libraries for products and convolutions, found at
// run time like the driver.
#ifndef PD_LIBCORE_DEVICE_CUDA_LIBRARIES_H_
#define PD_LIBCORE_DEVICE_CUDA_LIBRARIES_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/device/dynamic_library.h"

namespace pd {

struct LibraryVersion {
  std::string path, version;  ///< "13.0.2"
};

/// libcublasLt. Unavailable says where it was looked for, or that its version
/// is none that we know how to call (12 and 13).
absl::StatusOr<LibraryVersion> FindCublasLt();

/// The library itself, of such a version.
absl::StatusOr<DynamicLibrary> OpenCublasLt();

/// libcudnn, of version 9.
absl::StatusOr<LibraryVersion> FindCudnn();
absl::StatusOr<DynamicLibrary> OpenCudnn();

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDA_LIBRARIES_H_
