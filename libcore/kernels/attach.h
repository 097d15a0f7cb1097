// SPDX-License-Identifier: Apache-2.0
// Puts the fast kernels in front of the reference ones.
#ifndef PD_LIBCORE_KERNELS_ATTACH_H_
#define PD_LIBCORE_KERNELS_ATTACH_H_

#include "absl/status/status.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Adds our own kernels, those of 8 bits, oneDNN's, and those for GPUs, and
/// sets how layouts are changed. NotFound when an op is not in the registry:
/// call it after RegisterAllOps.
absl::Status AttachAllKernels(OpRegistry* registry);

/// The parts: for tests. Host: all but those for GPUs, and changes of layout.
absl::Status AttachHostKernels(OpRegistry* registry);
absl::Status AttachCpuKernels(OpRegistry* registry);
absl::Status AttachInt8Kernels(OpRegistry* registry);
absl::Status AttachOnednnKernels(OpRegistry* registry);
absl::Status AttachCudaKernels(OpRegistry* registry);

}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_ATTACH_H_
