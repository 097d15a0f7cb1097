// SPDX-License-Identifier: Apache-2.0
// The kernels of this room by op type, before they are in a registry.
#ifndef PD_LIBCORE_KERNELS_CUDA_KERNEL_TABLE_H_
#define PD_LIBCORE_KERNELS_CUDA_KERNEL_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/op_def.h"

namespace pd::cuda {

class KernelTable {
 public:
  /// Kernels of one op are asked in the order in which they were added.
  void Add(const std::string& type, Implementation implementation) {
    entries_.emplace_back(type, std::move(implementation));
  }
  const std::vector<std::pair<std::string, Implementation>>& entries() const {
    return entries_;
  }

 private:
  std::vector<std::pair<std::string, Implementation>> entries_;
};

/// All of them: generated from kernels.cmake.
void AddKernels(KernelTable* kernels);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_KERNEL_TABLE_H_
