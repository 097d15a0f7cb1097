// SPDX-License-Identifier: Apache-2.0
// The instruction sets that our kernels are compiled for: the baseline, AVX2
// with FMA, and AVX-512. Include it before hwy/foreach_target.h.
#ifndef PD_LIBCORE_KERNELS_CPU_TARGETS_H_
#define PD_LIBCORE_KERNELS_CPU_TARGETS_H_

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#endif  // PD_LIBCORE_KERNELS_CPU_TARGETS_H_
