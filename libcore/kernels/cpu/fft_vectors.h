// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of many lines of float32 of one length at once: a lane of
// a vector is a line, so every step of a transform is one of whole vectors.
// Formulas: libcore/ops/linalg/fft_c2c.cc.
#ifndef PD_LIBCORE_KERNELS_CPU_FFT_VECTORS_H_
#define PD_LIBCORE_KERNELS_CPU_FFT_VECTORS_H_

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "libcore/ops/common/axis_view.h"

namespace pd {
namespace cpu {

/// The factors of a length and its roots exp(-2 pi i k / n).
struct FftPlan {
  int64_t n = 1;
  std::vector<int64_t> factors;
  std::vector<float> real, imaginary;
};

/// Nothing for lengths with a prime factor above 13.
std::optional<FftPlan> MakeFftPlan(int64_t n);

/// Where the lines are, and what becomes of them.
struct FftLineJob {
  AxisView in, out;
  bool inverse = false;
  float scale = 1;
};

/// Complex lines to complex ones, which may be the same.
void FftComplex(const FftPlan& plan, const FftLineJob& job,
                const std::complex<float>* from, std::complex<float>* to);

/// Real lines of an even length to the first half of their transforms, and
/// back; `half` is the plan of half of the length, `whole` has its roots.
void FftReal(const FftPlan& half, const FftPlan& whole, const FftLineJob& job,
             const float* from, std::complex<float>* to);
void FftHermitian(const FftPlan& half, const FftPlan& whole,
                  const FftLineJob& job, const std::complex<float>* from,
                  float* to);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_FFT_VECTORS_H_
