// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length, in double precision.
#ifndef PD_LIBCORE_OPS_LINALG_FFT_H_
#define PD_LIBCORE_OPS_LINALG_FFT_H_

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace pd {

/// Transforms of one length: y[k] = sum over j of x[j] exp(-2 pi i j k / n).
/// Constant after construction: threads may share it.
class Fft {
 public:
  explicit Fft(int64_t n);  ///< n > 0

  int64_t size() const { return n_; }
  /// In place. `inverse`: exp(+2 pi i j k / n), without a factor.
  void Run(std::complex<double>* data, bool inverse) const;

 private:
  using Complex = std::complex<double>;
  // `count` points of `in`, `stride` apart, to `out`.
  void MixedRadix(const Complex* in, int64_t stride, Complex* out,
                  int64_t count, size_t level) const;
  void Bluestein(Complex* data) const;

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;  // exp(-2 pi i k / n)
  // For lengths with a large prime factor: a convolution of length 2^m.
  std::unique_ptr<Fft> padded_;
  std::vector<Complex> chirp_, chirp_transform_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_FFT_H_
