// SPDX-License-Identifier: Apache-2.0
// IEEE half precision and bfloat16 as storage types: they convert to and from
// float, rounding to nearest even, and are computed with as float.
#ifndef PD_LIBCORE_BASE_HALF_H_
#define PD_LIBCORE_BASE_HALF_H_

#include <cstdint>
#include <cstring>

namespace pd {

/// IEEE 754 binary16.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  operator float() const;
};

/// The upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  operator float() const {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};

inline BFloat16::BFloat16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  if ((wide & 0x7fffffffu) > 0x7f800000u) {  // NaN: keep it one
    bits = static_cast<uint16_t>((wide >> 16) | 0x40u);
    return;
  }
  wide += 0x7fffu + ((wide >> 16) & 1u);
  bits = static_cast<uint16_t>(wide >> 16);
}

inline Float16::Float16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  const uint32_t sign = (wide >> 16) & 0x8000u;
  const uint32_t magnitude = wide & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;  // NaN
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // rounds to 65520 or more: infinity
  } else if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 puts the rounded value into the low mantissa bits.
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    uint32_t rounded;
    std::memcpy(&rounded, &shifted, sizeof(rounded));
    half = rounded - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  bits = static_cast<uint16_t>(sign | half);
}

inline Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  uint32_t wide;
  if (exponent == 0x1fu) {
    wide = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112u) << 23) | (mantissa << 13);
  } else {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&wide, &magnitude, sizeof(wide));
    wide |= sign;
  }
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_HALF_H_
