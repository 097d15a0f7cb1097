// SPDX-License-Identifier: Apache-2.0
// Numbers that are known when a plan is made, such as a LoD, for kernels.
#ifndef PD_LIBCORE_KERNELS_CUDA_DEVICE_TABLES_H_
#define PD_LIBCORE_KERNELS_CUDA_DEVICE_TABLES_H_

#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cuda/cuda_of.h"
#include "libcore/ops/device_binding.h"

namespace pd::cuda {

/// A copy in device memory for as long as the plan; null when there are none.
template <typename T>
absl::StatusOr<const T*> KeepTable(DeviceBinding* binding,
                                   const std::vector<T>& numbers) {
  if (numbers.empty()) return static_cast<const T*>(nullptr);
  const size_t bytes = numbers.size() * sizeof(T);
  PD_ASSIGN_OR_RETURN(void* const table, binding->Keep(bytes));
  PD_RETURN_IF_ERROR(CudaOf(binding)->ToDevice(table, numbers.data(), bytes));
  return static_cast<const T*>(table);
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_DEVICE_TABLES_H_
