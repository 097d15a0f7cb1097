// SPDX-License-Identifier: Apache-2.0
// Masks that dropout draws, for kernels that drop elements themselves.
#ifndef PD_LIBCORE_KERNELS_CPU_DROPOUT_H_
#define PD_LIBCORE_KERNELS_CPU_DROPOUT_H_

#include <cstdint>

#include "libcore/ops/norm/dropout.h"

namespace pd {
namespace cpu {

/// Masks of this many elements and more are left to the reference.
constexpr int64_t kMostDraws = int64_t{1} << 33;

/// Elements [begin, end) of the mask that starts at `mask`, drawn by the
/// calling thread: 1 for what is kept, 0 for what is dropped.
void DrawMaskHere(DropoutSource::Numbers numbers, double probability,
                  int64_t begin, int64_t end, uint8_t* mask);

/// out = x * factor where the mask is not 0, else 0, on the calling thread.
void ApplyMask(const float* x, const uint8_t* mask, float factor, int64_t n,
               float* out);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_DROPOUT_H_
