// SPDX-License-Identifier: Apache-2.0
// Integers of either size, for kernels.
#ifndef PD_LIBCORE_KERNELS_CUDA_INTEGER_AT_H_
#define PD_LIBCORE_KERNELS_CUDA_INTEGER_AT_H_

#include <cstdint>

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// `wide`: they are int64, else int32.
PD_DEVICE int64_t WholeAt(const void* numbers, int32_t wide, int64_t i) {
  return wide != 0 ? static_cast<const int64_t*>(numbers)[i]
                   : static_cast<const int32_t*>(numbers)[i];
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_INTEGER_AT_H_
