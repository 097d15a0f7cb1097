// SPDX-License-Identifier: Apache-2.0
// Which NVIDIA GPUs there are and which of them this build computes on, after
// the support table of PaddlePaddle's manual.
#ifndef PD_LIBCORE_DEVICE_GPU_SUPPORT_H_
#define PD_LIBCORE_DEVICE_GPU_SUPPORT_H_

#include "absl/strings/string_view.h"

namespace pd {

/// A compute capability of the manual's table: 8.6 is major 8, minor 6.
struct GpuGeneration {
  int major, minor;
  absl::string_view architecture;  ///< "Ampere"
  absl::string_view hardware;      ///< some names
  absl::string_view packages;      ///< "CUDA10, CUDA11"; PaddlePaddle's own
};

/// The row of the table; null where the manual says nothing of it.
const GpuGeneration* FindGeneration(int major, int minor);

/// "Hopper"; "" for one that nobody here has heard of.
absl::string_view ArchitectureName(int major, int minor);

/// The oldest capability, major * 10 + minor, that our kernels are made for.
inline constexpr int kOldestCapability = 75;

/// The CUDA that the kernels were compiled by, 13000 for 13.0; 0 where this
/// build has none.
int BuiltCudaVersion();

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_GPU_SUPPORT_H_
