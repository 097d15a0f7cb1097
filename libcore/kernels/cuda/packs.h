// SPDX-License-Identifier: Apache-2.0
// Consecutive numbers, loaded and stored by instructions of 16 bytes: one for 8
// halves, two for 8 floats. Loading and unpacking are two functions, since a
// number that is looked at is waited for: a thread begins all its loads, then
// unpacks. The type of the numbers is asked for once a pack. A kernel that
// finds an array that does not begin at a multiple of 16 bytes, which all
// threads of a block find alike, goes through it with packs of one number.
#ifndef PD_LIBCORE_KERNELS_CUDA_PACKS_H_
#define PD_LIBCORE_KERNELS_CUDA_PACKS_H_

#include <cstdint>

#include "libcore/kernels/cuda/low_precision.h"

namespace pd::cuda {

/// W numbers to compute with: 1, 4 or 8.
template <typename T, int W>
struct Pack {
  PD_DEVICE T& operator[](int j) { return numbers[j]; }
  PD_DEVICE const T& operator[](int j) const { return numbers[j]; }
  T numbers[W];
};

/// Whether packs of W can be loaded and stored from `at` on.
template <int W>
PD_DEVICE bool IsAligned(const void* at, NumberType type) {
  const int bytes = W * (type == NumberType::kFloat32 ? 4 : 2);
  const auto address = reinterpret_cast<uintptr_t>(at);
  return W == 1 ||
         address % static_cast<unsigned>(bytes < 16 ? bytes : 16) == 0;
}
template <int W>
PD_DEVICE bool IsAligned(const FloatsIn& in) {
  return IsAligned<W>(in.at, in.type);
}
template <int W>
PD_DEVICE bool IsAligned(const FloatsOut& out) {
  return IsAligned<W>(out.at, out.type);
}

/// W numbers of FloatsIn as they were loaded.
template <int W>
struct RawPack {
#ifdef __CUDACC__
  uint4 words[W == 8 ? 2 : 1];
#else
  Pack<float, W> pack;
#endif
};

#ifdef __CUDACC__

/// Numbers i to i + W - 1 of `in`.
template <int W>
PD_DEVICE RawPack<W> LoadRaw(const FloatsIn& in, int64_t i) {
  RawPack<W> raw;
  const bool wide = in.type == NumberType::kFloat32;
  const char* const from = static_cast<const char*>(in.at) + i * (wide ? 4 : 2);
  if constexpr (W == 1) {
    if (wide)
      raw.words[0].x = *reinterpret_cast<const uint32_t*>(from);
    else
      raw.words[0].x = *reinterpret_cast<const uint16_t*>(from);
  } else if constexpr (W == 4) {
    if (wide) {
      raw.words[0] = *reinterpret_cast<const uint4*>(from);
    } else {
      const uint2 half = *reinterpret_cast<const uint2*>(from);
      raw.words[0].x = half.x;
      raw.words[0].y = half.y;
    }
  } else {
    raw.words[0] = reinterpret_cast<const uint4*>(from)[0];
    if (wide) raw.words[1] = reinterpret_cast<const uint4*>(from)[1];
  }
  return raw;
}

PD_DEVICE float2 FloatsOfWord(NumberType type, uint32_t word) {
  if (type == NumberType::kBFloat16)
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
  return {FromFloat16(static_cast<uint16_t>(word)),
          FromFloat16(static_cast<uint16_t>(word >> 16))};
}
PD_DEVICE uint32_t WordOfFloats(NumberType type, float low, float high) {
  if (type == NumberType::kBFloat16) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const uint32_t&>(two);
  }
  const __half2 two = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(two);
}

/// The floats that LoadRaw loaded from `in`.
template <int W>
PD_DEVICE Pack<float, W> Unpack(const FloatsIn& in, const RawPack<W>& raw) {
  Pack<float, W> pack;
  if constexpr (W == 1) {
    pack[0] = in.type == NumberType::kFloat32 ? __uint_as_float(raw.words[0].x)
              : in.type == NumberType::kFloat16
                  ? FromFloat16(static_cast<uint16_t>(raw.words[0].x))
                  : FromBFloat16(static_cast<uint16_t>(raw.words[0].x));
  } else if (in.type == NumberType::kFloat32) {
    PD_UNROLL
    for (int j = 0; j < W / 4; ++j) {
      pack[4 * j] = __uint_as_float(raw.words[j].x);
      pack[4 * j + 1] = __uint_as_float(raw.words[j].y);
      pack[4 * j + 2] = __uint_as_float(raw.words[j].z);
      pack[4 * j + 3] = __uint_as_float(raw.words[j].w);
    }
  } else {
    const auto unpack = [&](NumberType type) {
      const uint32_t words[] = {raw.words[0].x, raw.words[0].y, raw.words[0].z,
                                raw.words[0].w};
      PD_UNROLL
      for (int j = 0; j < W / 2; ++j) {
        const float2 two = FloatsOfWord(type, words[j]);
        pack[2 * j] = two.x;
        pack[2 * j + 1] = two.y;
      }
    };
    if (in.type == NumberType::kFloat16)
      unpack(NumberType::kFloat16);
    else
      unpack(NumberType::kBFloat16);
  }
  return pack;
}

/// Writes numbers i to i + W - 1, each rounded to nearest even.
template <int W>
PD_DEVICE void StorePack(const FloatsOut& out, int64_t i,
                         const Pack<float, W>& pack) {
  if constexpr (W == 1) {
    out[i] = pack[0];
  } else if (out.type == NumberType::kFloat32) {
    uint4* const to = reinterpret_cast<uint4*>(static_cast<float*>(out.at) + i);
    PD_UNROLL
    for (int j = 0; j < W / 4; ++j)
      to[j] = {__float_as_uint(pack[4 * j]), __float_as_uint(pack[4 * j + 1]),
               __float_as_uint(pack[4 * j + 2]),
               __float_as_uint(pack[4 * j + 3])};
  } else {
    uint32_t words[W / 2];
    const auto round = [&](NumberType type) {
      PD_UNROLL
      for (int j = 0; j < W / 2; ++j)
        words[j] = WordOfFloats(type, pack[2 * j], pack[2 * j + 1]);
    };
    if (out.type == NumberType::kFloat16)
      round(NumberType::kFloat16);
    else
      round(NumberType::kBFloat16);
    uint16_t* const to = static_cast<uint16_t*>(out.at) + i;
    if constexpr (W == 4)
      *reinterpret_cast<uint2*>(to) = {words[0], words[1]};
    else
      *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
  }
}

#else

template <int W>
RawPack<W> LoadRaw(const FloatsIn& in, int64_t i) {
  RawPack<W> raw;
  for (int j = 0; j < W; ++j) raw.pack[j] = in[i + j];
  return raw;
}
template <int W>
Pack<float, W> Unpack(const FloatsIn&, const RawPack<W>& raw) {
  return raw.pack;
}
template <int W>
void StorePack(const FloatsOut& out, int64_t i, const Pack<float, W>& pack) {
  for (int j = 0; j < W; ++j) out[i + j] = pack[j];
}

#endif

/// Doubles, which kernels that are templates over T go through as they lie.
template <int W>
PD_DEVICE Pack<double, W> LoadRaw(const double* in, int64_t i) {
  Pack<double, W> pack;
  PD_UNROLL
  for (int j = 0; j < W; ++j) pack[j] = in[i + j];
  return pack;
}
template <int W>
PD_DEVICE Pack<double, W> Unpack(const double*, const Pack<double, W>& raw) {
  return raw;
}
template <int W>
PD_DEVICE void StorePack(double* out, int64_t i, const Pack<double, W>& pack) {
  PD_UNROLL
  for (int j = 0; j < W; ++j) out[i + j] = pack[j];
}

/// Numbers i to i + W - 1 of `in`, which are FloatsIn or doubles.
template <int W, typename In>
PD_DEVICE auto LoadPack(const In& in, int64_t i) {
  return Unpack(in, LoadRaw<W>(in, i));
}

template <int W>
PD_DEVICE Pack<float, W> LoadPack(const float* in, int64_t i) {
  FloatsIn floats;
  floats.at = in;
  return LoadPack<W>(floats, i);
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_PACKS_H_
