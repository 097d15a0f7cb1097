// SPDX-License-Identifier: Apache-2.0
// How much memory tensors and arrays may have together. A program may ask for
// any size; it is refused by name here, before the system kills the process or
// a machine starts to swap. ZeroedBytes and NewArray count what they give.
#ifndef PD_LIBCORE_BASE_MEMORY_LIMIT_H_
#define PD_LIBCORE_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"

namespace pd {

/// Bytes that this process can have: the machine's memory, lowered by the
/// limits of its cgroups (v2 and v1) and of its address space.
int64_t MachineMemory();

/// The limit in bytes; MachineMemory() until it is set.
int64_t MemoryLimit();
void SetMemoryLimit(int64_t bytes);

/// Bytes that are counted now.
int64_t MemoryInUse();

/// ResourceExhausted when `bytes` alone are above the limit.
absl::Status CheckMemory(int64_t bytes);

/// Whether a tensor of this shape can be at all: an error of CheckedBytes, or
/// ResourceExhausted where its extents alone are above the limit. It names
/// dtype and shape; callers add the variable.
absl::Status CheckTensorSize(DType dtype, const Shape& shape);

/// Counts `bytes` until ReleaseMemory; ResourceExhausted, and nothing counted,
/// when they and those in use are above the limit.
absl::Status ReserveMemory(int64_t bytes);
void ReleaseMemory(int64_t bytes);

/// "1.5 GB", "123 bytes": for messages, in powers of 1024.
std::string MemoryText(int64_t bytes);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_MEMORY_LIMIT_H_
