// SPDX-License-Identifier: Apache-2.0
// float to half as PaddlePaddle converts on CPU: towards zero, and to infinity
// above the largest float16. The storage types themselves round to nearest.
#ifndef PD_LIBCORE_BASE_TRUNCATE_HALF_H_
#define PD_LIBCORE_BASE_TRUNCATE_HALF_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "libcore/base/half.h"

namespace pd {

inline Float16 TruncatedFloat16(float value) {
  constexpr float kLargest = 65504.0f;
  if (std::fabs(value) > kLargest)
    value = std::copysign(std::numeric_limits<float>::infinity(), value);
  Float16 half(value);
  if (std::fabs(static_cast<float>(half)) > std::fabs(value)) --half.bits;
  return half;
}

inline BFloat16 TruncatedBFloat16(float value) {
  if (value != value) return BFloat16(value);
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  BFloat16 half;
  half.bits = static_cast<uint16_t>(wide >> 16);
  return half;
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_TRUNCATE_HALF_H_
