// SPDX-License-Identifier: Apache-2.0
// Code that PaddlePaddle's quantization ops share. With n = 2^(bits-1) - 1 and
// a scale s (of the tensor, or of a channel):
//   round_type 0: q = clip(round_half_even(n / s * x), -n - 1, n)
//   round_type 1: q = round_half_away(n / s * clip(x, -s, s))
// A scale of at most 1e-30 is divided by as s + 1e-6.
#ifndef PD_LIBCORE_OPS_QUANTIZE_QUANTIZE_H_
#define PD_LIBCORE_OPS_QUANTIZE_QUANTIZE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// 2^(bits-1) - 1.
inline int32_t QuantLevels(int32_t bits) { return (1 << (bits - 1)) - 1; }

/// Quantizes numbers with one scale, and back where asked for.
template <typename T>
class Quantizer {
 public:
  Quantizer(int32_t levels, bool to_even, bool and_back, T scale)
      : levels_(static_cast<T>(levels)),
        to_even_(to_even),
        and_back_(and_back),
        scale_(scale),
        factor_(levels_ *
                (T(1) / (scale <= T(1e-30) ? scale + T(1e-6) : scale))) {}

  T operator()(T x) const {
    T q;
    if (to_even_) {
      q = std::nearbyint(factor_ * x);
      q = std::max(std::min(q, levels_), -levels_ - T(1));
    } else {
      q = std::round(factor_ * std::max(std::min(x, scale_), -scale_));
    }
    return and_back_ ? q * scale_ / levels_ : q;
  }

 private:
  T levels_;
  bool to_even_, and_back_;
  T scale_, factor_;
};

/// Attributes bit_length and round_type.
struct QuantAttrs {
  int32_t levels = 127;
  bool to_even = false;
};
absl::StatusOr<QuantAttrs> ReadQuantAttrs(const OpDesc& op);

/// x[outer, channels, inner] around axis `axis`.
struct ChannelView {
  int64_t outer = 1, channels = 1, inner = 1;
};
/// InvalidArgument for an axis outside the shape.
absl::StatusOr<ChannelView> ViewChannels(const Shape& shape, int64_t axis);

/// scales[c] = max |x| over channel c.
template <typename T>
void AbsMaxOfChannels(const T* x, const ChannelView& view, T* scales) {
  std::fill(scales, scales + view.channels, T(0));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t c = 0; c < view.channels; ++c)
      for (int64_t i = 0; i < view.inner; ++i)
        scales[c] = std::max(scales[c], std::fabs(*x++));
}

/// out = f(scales[c], x) for every element of channel c.
template <typename T, typename Out, typename F>
void ForChannels(const T* x, const ChannelView& view, Out* out, const F& f) {
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.channels; ++c) {
      const auto g = f(c);
      for (int64_t i = 0; i < view.inner; ++i) *out++ = g(*x++);
    }
  }
}

/// The scale's moving average: state and accum are moved on.
template <typename T>
T MoveScale(T current, float rate, T in_state, T in_accum, T* out_state,
            T* out_accum) {
  *out_state = static_cast<T>(rate) * in_state + T(1);
  *out_accum = static_cast<T>(rate) * in_accum + current;
  return *out_accum / *out_state;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_QUANTIZE_QUANTIZE_H_
