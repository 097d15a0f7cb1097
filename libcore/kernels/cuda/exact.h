// SPDX-License-Identifier: Apache-2.0
// Arithmetic in which every operation is rounded: nvcc fuses a product and a
// sum that are written with operators, and quantized numbers are to be the
// CPU's to the bit.
#ifndef PD_LIBCORE_KERNELS_CUDA_EXACT_H_
#define PD_LIBCORE_KERNELS_CUDA_EXACT_H_

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

#ifdef __CUDACC__
PD_DEVICE float Mul(float a, float b) { return __fmul_rn(a, b); }
PD_DEVICE float Add(float a, float b) { return __fadd_rn(a, b); }
PD_DEVICE float Div(float a, float b) { return __fdiv_rn(a, b); }
#else
inline float Mul(float a, float b) { return a * b; }
inline float Add(float a, float b) { return a + b; }
inline float Div(float a, float b) { return a / b; }
#endif

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_EXACT_H_
