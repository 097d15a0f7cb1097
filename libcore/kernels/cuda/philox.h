// SPDX-License-Identifier: Apache-2.0
// The numbers of libcore/base/rng.h, for kernels.
#ifndef PD_LIBCORE_KERNELS_CUDA_PHILOX_H_
#define PD_LIBCORE_KERNELS_CUDA_PHILOX_H_

#include <cstdint>

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// Which numbers a kernel draws. `run`: the seed and the step of the run, of
/// which they are, else of `seed`.
struct DrawArgs {
  const uint64_t* run;
  uint64_t seed, stream;
};

/// Four numbers of Philox4x32-10.
struct PhiloxFour {
  uint32_t c[4];
};

/// Numbers 4 * i to 4 * i + 3.
PD_DEVICE PhiloxFour PhiloxBlock(const DrawArgs& draws, uint64_t i) {
  const uint64_t seed = draws.run != nullptr ? draws.run[0] : draws.seed;
  const uint64_t stream =
      draws.stream +
      (draws.run != nullptr ? draws.run[1] * 0x9E3779B97F4A7C15ull : 0);
  uint32_t c[4] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                   static_cast<uint32_t>(stream),
                   static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0;
    c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[3] = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// Number i.
PD_DEVICE uint32_t PhiloxBits(const DrawArgs& draws, uint64_t i) {
  const PhiloxFour four = PhiloxBlock(draws, i >> 2);
  const uint32_t which = static_cast<uint32_t>(i & 3);
  return which == 0   ? four.c[0]
         : which == 1 ? four.c[1]
         : which == 2 ? four.c[2]
                      : four.c[3];
}

/// A number as one that is uniform in [0, 1).
PD_DEVICE float UniformOf(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

/// Number i, uniform in [0, 1).
PD_DEVICE float PhiloxUniform(const DrawArgs& draws, uint64_t i) {
  return UniformOf(PhiloxBits(draws, i));
}

/// Below n, which has 32 bits at most, of numbers i and i + 1.
PD_DEVICE uint64_t PhiloxBelow(const DrawArgs& draws, uint64_t i, uint64_t n) {
  const uint64_t high = PhiloxBits(draws, i), low = PhiloxBits(draws, i + 1);
  return (high * n + ((low * n) >> 32)) >> 32;
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_PHILOX_H_
