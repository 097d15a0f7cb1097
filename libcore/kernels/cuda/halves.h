// SPDX-License-Identifier: Apache-2.0
// Numbers of any width as the kernels of mixed precision read and write them.
#ifndef PD_LIBCORE_KERNELS_CUDA_HALVES_H_
#define PD_LIBCORE_KERNELS_CUDA_HALVES_H_

#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "libcore/base/half.h"
#include "libcore/ops/truncate_half.h"
#endif

namespace pd::cuda {

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

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_HALVES_H_
