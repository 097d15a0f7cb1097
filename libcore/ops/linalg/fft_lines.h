// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along axes of tensors.
#ifndef PD_LIBCORE_OPS_LINALG_FFT_LINES_H_
#define PD_LIBCORE_OPS_LINALG_FFT_LINES_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/linalg/fft.h"

namespace pd {

/// Calls `body(work, in_start, out_start)` for every line along the axis that
/// has n_in elements in one tensor and n_out in another; `work` has room for
/// one transform of fft.size().
template <typename Body>
void ForEachFftLine(const Fft& fft, const AxisView& in, const AxisView& out,
                    const Body& body) {
  const int64_t lines = in.outer * in.inner;
  ParallelFor(
      lines, std::max<int64_t>(1, 4096 / fft.size()),
      [&](int64_t begin, int64_t end) {
        std::vector<std::complex<double>> work(static_cast<size_t>(fft.size()));
        for (int64_t i = begin; i < end; ++i)
          body(work.data(), in.Start(i), out.Start(i));
      });
}

/// Transforms every line of `from` to `to` (which may be `from`).
template <typename C>
void FftLines(const Fft& fft, const AxisView& view, bool inverse, double scale,
              const C* from, C* to) {
  using R = typename C::value_type;
  ForEachFftLine(fft, view, view,
                 [&](std::complex<double>* work, int64_t start, int64_t) {
                   for (int64_t k = 0; k < view.n; ++k)
                     work[k] = from[start + k * view.inner];
                   fft.Run(work, inverse);
                   for (int64_t k = 0; k < view.n; ++k)
                     to[start + k * view.inner] =
                         C(static_cast<R>(work[k].real() * scale),
                           static_cast<R>(work[k].imag() * scale));
                 });
}

/// Real lines to the first `out.n` values of their transforms.
template <typename R>
void FftRealLines(const Fft& fft, const AxisView& in, const AxisView& out,
                  bool inverse, double scale, const R* from,
                  std::complex<R>* to) {
  ForEachFftLine(fft, in, out,
                 [&](std::complex<double>* work, int64_t start, int64_t first) {
                   for (int64_t k = 0; k < in.n; ++k)
                     work[k] = from[start + k * in.inner];
                   fft.Run(work, inverse);
                   for (int64_t k = 0; k < out.n; ++k)
                     to[first + k * out.inner] = {
                         static_cast<R>(work[k].real() * scale),
                         static_cast<R>(work[k].imag() * scale)};
                 });
}

/// The real parts of the transforms of lines of out.n values, of which
/// `in` holds the first out.n / 2 + 1 (missing ones are 0) and the others are
/// their conjugates.
template <typename R>
void FftHermitianLines(const Fft& fft, const AxisView& in, const AxisView& out,
                       bool inverse, double scale, const std::complex<R>* from,
                       R* to) {
  const int64_t n = out.n, half = std::min(in.n, n / 2 + 1);
  ForEachFftLine(fft, in, out,
                 [&](std::complex<double>* work, int64_t start, int64_t first) {
                   std::fill(work, work + n, std::complex<double>());
                   for (int64_t k = 0; k < half; ++k) {
                     const std::complex<double> v = from[start + k * in.inner];
                     work[k] = v;
                     if (k > 0 && 2 * k != n) work[n - k] = std::conj(v);
                   }
                   work[0] = work[0].real();
                   if (n % 2 == 0 && half == n / 2 + 1)
                     work[n / 2] = work[n / 2].real();
                   fft.Run(work, inverse);
                   for (int64_t k = 0; k < n; ++k)
                     to[first + k * out.inner] =
                         static_cast<R>(work[k].real() * scale);
                 });
}

/// The factor of a transform of `n` values in all: "backward" divides the
/// inverse by n, "forward" the other one, "ortho" both by its square root.
inline absl::StatusOr<double> FftScale(absl::string_view normalization,
                                       bool forward, int64_t n) {
  const double count = static_cast<double>(std::max<int64_t>(n, 1));
  if (normalization == "ortho") return 1.0 / std::sqrt(count);
  if (normalization == "backward") return forward ? 1.0 : 1.0 / count;
  if (normalization == "forward") return forward ? 1.0 / count : 1.0;
  return InvalidArgument(
      "attr 'normalization' is '%s'; expected backward, forward or ortho",
      normalization);
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_FFT_LINES_H_
