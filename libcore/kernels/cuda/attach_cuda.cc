// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/cuda/kernel_table.h"

namespace pd {

absl::Status AttachCudaKernels(OpRegistry* registry) {
  cuda::KernelTable kernels;
  cuda::AddKernels(&kernels);
  for (const auto& [type, implementation] : kernels.entries())
    PD_RETURN_IF_ERROR(registry->AddImplementation(type, implementation));
  return absl::OkStatus();
}

}  // namespace pd
