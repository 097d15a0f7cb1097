// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits as programs hand them to tensors: float16 (IEEE binary16)
// and bfloat16, stored in `x`, computed with as float.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_HALF_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_HALF_H_

#include <cmath>
#include <cstdint>
#include <cstring>

namespace phi {
namespace dtype {
namespace detail {

inline uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to nearest, ties to even; NaN stays NaN.
inline uint16_t HalfBits(float value) {
  const uint32_t bits = BitsOf(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (rest >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    // Below 2^-14: a multiple of 2^-24, which the addition rounds to.
    const float shifted = FloatOf(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (BitsOf(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (rest >> 13) & 1u;
  return static_cast<uint16_t>(sign |
                               ((rest - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float FromHalfBits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 31) return FloatOf(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -tiny : tiny;
  }
  return FloatOf(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline uint16_t BrainBits(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

// Assignments that compute, rounded once.
#define PD_HALF_ASSIGNS(T)                                               \
  T& operator+=(float value) { return *this = T(float(*this) + value); } \
  T& operator-=(float value) { return *this = T(float(*this) - value); } \
  T& operator*=(float value) { return *this = T(float(*this) * value); } \
  T& operator/=(float value) { return *this = T(float(*this) / value); }

struct alignas(2) float16 {
  uint16_t x = 0;

  float16() = default;
  float16(float value) : x(detail::HalfBits(value)) {}  // NOLINT
  template <typename T>
  explicit float16(const T& value) : float16(static_cast<float>(value)) {}
  operator float() const { return detail::FromHalfBits(x); }
  PD_HALF_ASSIGNS(float16)
};

struct alignas(2) bfloat16 {
  uint16_t x = 0;

  bfloat16() = default;
  bfloat16(float value) : x(detail::BrainBits(value)) {}  // NOLINT
  template <typename T>
  explicit bfloat16(const T& value) : bfloat16(static_cast<float>(value)) {}
  operator float() const {
    return detail::FloatOf(static_cast<uint32_t>(x) << 16);
  }
  PD_HALF_ASSIGNS(bfloat16)
};
#undef PD_HALF_ASSIGNS

}  // namespace dtype
}  // namespace phi

namespace paddle {
using float16 = phi::dtype::float16;
using bfloat16 = phi::dtype::bfloat16;
namespace platform {
using float16 = phi::dtype::float16;
using bfloat16 = phi::dtype::bfloat16;
}  // namespace platform
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_HALF_H_
