// SPDX-License-Identifier: Apache-2.0
// Instructions beyond those that every processor of a kind has. A function that
// gains by them is written once, as PD_RUN_INLINE, and called by one function
// for each set, which the compiler compiles for it.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_PROCESSOR_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_PROCESSOR_H_

#if defined(__GNUC__)
#define PD_RUN_INLINE inline __attribute__((always_inline))
#else
#define PD_RUN_INLINE inline
#endif

// A loop of at most 9 rounds over registers, which must not become one over
// memory.
#if defined(__GNUC__) && !defined(__clang__)
#define PD_RUN_UNROLL _Pragma("GCC unroll 9")
#else
#define PD_RUN_UNROLL
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define PD_RUN_X86 1
#define PD_RUN_AVX2 __attribute__((target("avx2,fma")))
#define PD_RUN_AVX512 __attribute__((target("avx512f,avx2,fma")))
#endif

namespace pd_run {

enum class Instructions {
  kPortable,  ///< SSE2 on x86-64, NEON on aarch64
  kAvx2,
  kAvx512,
};

/// The best that this processor has.
Instructions Available();

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_PROCESSOR_H_
