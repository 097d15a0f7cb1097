// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_KERNELS_CPU_HALF_SUMS_H_
#define PD_LIBCORE_KERNELS_CPU_HALF_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "libcore/base/half.h"

namespace pd {
namespace cpu {

/// to[i] = the sum of all inputs[k][i], rounded once. `to` may be an input.
void SumBrains(const BFloat16* const* inputs, size_t count, int64_t begin,
               int64_t end, BFloat16* to);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_HALF_SUMS_H_
