// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_KERNELS_CPU_VECTOR_FLOATS_H_
#define PD_LIBCORE_KERNELS_CPU_VECTOR_FLOATS_H_

#include <cstdint>

namespace pd {
namespace cpu {

/// Floats in a vector of the instruction set in use: 8 or 16.
int64_t VectorFloats();

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_VECTOR_FLOATS_H_
