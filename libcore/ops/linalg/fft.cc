// SPDX-License-Identifier: Apache-2.0
// Lengths whose prime factors are small are cut in time, factor by factor
// (Cooley and Tukey). Others become a convolution with a chirp by
//   j k = (j^2 + k^2 - (k - j)^2) / 2
// (Bluestein), whose length is a power of two.
#include "libcore/ops/linalg/fft.h"

#include <algorithm>
#include <cmath>

namespace pd {
namespace {

constexpr int64_t kLargestFactor = 31;  // above, Bluestein is quicker

// exp(-i angle), where the angle is a multiple of pi / n.
std::complex<double> Root(int64_t k, int64_t n) {
  // The first octant is where sin and cos are most accurate.
  const double angle = M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

}  // namespace

Fft::Fft(int64_t n) : n_(n) {
  int64_t rest = n;
  for (int64_t p : {4, 2, 3, 5})
    for (; rest % p == 0; rest /= p) factors_.push_back(p);
  for (int64_t p = 7; p <= kLargestFactor; p += 2)
    for (; rest % p == 0; rest /= p) factors_.push_back(p);
  if (rest == 1) {
    roots_.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k)
      roots_[static_cast<size_t>(k)] = Root(2 * k, n);
    return;
  }
  int64_t length = 1;
  while (length < 2 * n - 1) length *= 2;
  padded_ = std::make_unique<Fft>(length);
  chirp_.resize(static_cast<size_t>(n));
  chirp_transform_.assign(static_cast<size_t>(length), Complex());
  int64_t square = 0;  // k^2 modulo 2 n: the chirp's period
  for (int64_t k = 0; k < n; ++k) {
    const Complex c = Root(square, n);
    chirp_[static_cast<size_t>(k)] = c;
    chirp_transform_[static_cast<size_t>(k)] = std::conj(c);
    if (k > 0) chirp_transform_[static_cast<size_t>(length - k)] = std::conj(c);
    square = (square + 2 * k + 1) % (2 * n);
  }
  padded_->Run(chirp_transform_.data(), false);
}

void Fft::MixedRadix(const Complex* in, int64_t stride, Complex* out,
                     int64_t count, size_t level) const {
  if (count == 1) {
    out[0] = in[0];
    return;
  }
  const int64_t p = factors_[level], part = count / p;
  for (int64_t r = 0; r < p; ++r)
    MixedRadix(in + r * stride, stride * p, out + r * part, part, level + 1);
  const int64_t turn = n_ / count;  // roots_[turn] is the root of `count`
  const int64_t turn_p = n_ / p;
  Complex t[kLargestFactor];
  for (int64_t k = 0; k < part; ++k) {
    for (int64_t r = 0; r < p; ++r)
      t[r] = out[r * part + k] * roots_[static_cast<size_t>(r * k * turn)];
    if (p == 2) {
      out[k] = t[0] + t[1];
      out[part + k] = t[0] - t[1];
      continue;
    }
    if (p == 4) {
      const Complex a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3];
      const Complex d = t[1] - t[3], turned(d.imag(), -d.real());  // -i d
      out[k] = a + c;
      out[part + k] = b + turned;
      out[2 * part + k] = a - c;
      out[3 * part + k] = b - turned;
      continue;
    }
    for (int64_t q = 0; q < p; ++q) {
      Complex sum = t[0];
      for (int64_t r = 1; r < p; ++r)
        sum += t[r] * roots_[static_cast<size_t>(q * r % p * turn_p)];
      out[q * part + k] = sum;
    }
  }
}

void Fft::Bluestein(Complex* data) const {
  std::vector<Complex> work(static_cast<size_t>(padded_->size()));
  for (size_t k = 0; k < chirp_.size(); ++k) work[k] = data[k] * chirp_[k];
  padded_->Run(work.data(), false);
  for (size_t k = 0; k < work.size(); ++k) work[k] *= chirp_transform_[k];
  padded_->Run(work.data(), true);
  const double scale = 1.0 / static_cast<double>(padded_->size());
  for (size_t k = 0; k < chirp_.size(); ++k)
    data[k] = work[k] * chirp_[k] * scale;
}

void Fft::Run(Complex* data, bool inverse) const {
  if (inverse)
    for (int64_t i = 0; i < n_; ++i) data[i] = std::conj(data[i]);
  if (padded_ != nullptr) {
    Bluestein(data);
  } else {
    std::vector<Complex> out(static_cast<size_t>(n_));
    MixedRadix(data, 1, out.data(), n_, 0);
    std::copy(out.begin(), out.end(), data);
  }
  if (inverse)
    for (int64_t i = 0; i < n_; ++i) data[i] = std::conj(data[i]);
}

}  // namespace pd
