// SPDX-License-Identifier: Apache-2.0
// The instruction sets that our kernels are compiled for: AVX2 with FMA, the
// floor of the whole tree, and AVX-512 but for builds with sanitizers. Include
// it before any of Highway.
#ifndef PD_LIBCORE_KERNELS_CPU_TARGETS_H_
#define PD_LIBCORE_KERNELS_CPU_TARGETS_H_

// Without this, -march=x86-64-v3 is not AVX2 enough for Highway.
#define HWY_DISABLE_PCLMUL_AES
#ifdef PD_WITH_SANITIZER
// The loops are the same text for each: one is enough, in half of the time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif

#endif  // PD_LIBCORE_KERNELS_CPU_TARGETS_H_
