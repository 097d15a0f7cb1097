// SPDX-License-Identifier: Apache-2.0
// Numbers of any width: what they are, and floats that may be halves in memory.
// Kernels compute in float32 and round once. Which type it is, is decided for
// each number: all threads decide alike, and wait for memory anyway, while a
// kernel for each type would make the library three times as large.
#ifndef PD_LIBCORE_KERNELS_CUDA_LOW_PRECISION_H_
#define PD_LIBCORE_KERNELS_CUDA_LOW_PRECISION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "libcore/base/half.h"
#include "libcore/base/truncate_half.h"
#endif

namespace pd::cuda {

/// The type of numbers, where a kernel takes several.
enum class NumberType : int32_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat64,
  kInt64,
  kInt32,
  kUInt8,
  kBool,
};

#ifdef __CUDACC__
PD_DEVICE float FromFloat16(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
PD_DEVICE float FromBFloat16(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
PD_DEVICE uint16_t ToFloat16(float v) {
  return __half_as_ushort(__float2half_rn(v));
}
PD_DEVICE uint16_t ToBFloat16(float v) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(v));
}
PD_DEVICE uint16_t ToTruncatedFloat16(float v) {
  return __half_as_ushort(fabsf(v) > 65504.0f ? __float2half_rn(v * HUGE_VALF)
                                              : __float2half_rz(v));
}
PD_DEVICE uint16_t ToTruncatedBFloat16(float v) {
  return v != v ? ToBFloat16(v)
                : static_cast<uint16_t>(__float_as_uint(v) >> 16);
}
#else
inline float FromFloat16(uint16_t bits) {
  Float16 half;
  half.bits = bits;
  return half;
}
inline float FromBFloat16(uint16_t bits) {
  BFloat16 half;
  half.bits = bits;
  return half;
}
inline uint16_t ToFloat16(float v) { return Float16(v).bits; }
inline uint16_t ToBFloat16(float v) { return BFloat16(v).bits; }
inline uint16_t ToTruncatedFloat16(float v) { return TruncatedFloat16(v).bits; }
inline uint16_t ToTruncatedBFloat16(float v) {
  return TruncatedBFloat16(v).bits;
}
#endif

/// Element i of numbers of one of the three types that are floats to us.
PD_DEVICE float LoadFloat(NumberType type, const void* from, int64_t i) {
  if (type == NumberType::kFloat32) return static_cast<const float*>(from)[i];
  const uint16_t bits = static_cast<const uint16_t*>(from)[i];
  return type == NumberType::kFloat16 ? FromFloat16(bits) : FromBFloat16(bits);
}
/// Rounds to nearest even.
PD_DEVICE void StoreFloat(NumberType type, void* to, int64_t i, float value) {
  if (type == NumberType::kFloat32)
    static_cast<float*>(to)[i] = value;
  else
    static_cast<uint16_t*>(to)[i] =
        type == NumberType::kFloat16 ? ToFloat16(value) : ToBFloat16(value);
}

/// Numbers in device memory that a kernel reads as floats.
struct FloatsIn {
  FloatsIn() = default;
  FloatsIn(const float* floats) : at(floats) {}  // NOLINT: they are
  FloatsIn(NumberType numbers, const void* from) : at(from), type(numbers) {}

  PD_DEVICE float operator[](int64_t i) const { return LoadFloat(type, at, i); }
  /// The numbers from i on.
  PD_DEVICE FloatsIn operator+(int64_t i) const {
    FloatsIn rest = *this;
    const int64_t size = type == NumberType::kFloat32 ? 4 : 2;
    rest.at = static_cast<const char*>(at) + i * size;
    return rest;
  }
  PD_DEVICE bool operator==(std::nullptr_t) const { return at == nullptr; }
  PD_DEVICE bool operator!=(std::nullptr_t) const { return at != nullptr; }

  const void* at = nullptr;
  NumberType type = NumberType::kFloat32;
};

/// Numbers that a kernel writes: `out[i] = value` rounds to nearest even.
struct FloatsOut {
  struct Element {
    PD_DEVICE void operator=(float value) const {  // NOLINT: as a float's
      StoreFloat(type, at, i, value);
    }
    NumberType type;
    void* at;
    int64_t i;
  };

  FloatsOut() = default;
  FloatsOut(float* floats) : at(floats) {}  // NOLINT: they are
  FloatsOut(NumberType numbers, void* to) : at(to), type(numbers) {}

  PD_DEVICE Element operator[](int64_t i) const { return {type, at, i}; }
  PD_DEVICE bool operator!=(std::nullptr_t) const { return at != nullptr; }

  void* at = nullptr;
  NumberType type = NumberType::kFloat32;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LOW_PRECISION_H_
