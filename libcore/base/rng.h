// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC11). Number i of a stream
// is a function of (seed, stream, i) alone, so any split over threads, and any
// restart in the middle, gives the same bits.
#ifndef PD_LIBCORE_BASE_RNG_H_
#define PD_LIBCORE_BASE_RNG_H_

#include <array>
#include <cmath>
#include <cstdint>
#include "absl/strings/string_view.h"

namespace pd {

class Philox {
 public:
  /// `seed` is the user's; `stream` tells apart uses of it (an operator, an
  /// epoch's shuffle, a sample's augmentation).
  Philox(uint64_t seed, uint64_t stream)
      : key0_(static_cast<uint32_t>(seed)),
        key1_(static_cast<uint32_t>(seed >> 32)),
        stream_(stream) {}

  /// The four 32-bit numbers of block `counter`.
  std::array<uint32_t, 4> Block(uint64_t counter) const {
    uint32_t c0 = static_cast<uint32_t>(counter);
    uint32_t c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream_);
    uint32_t c3 = static_cast<uint32_t>(stream_ >> 32);
    uint32_t k0 = key0_, k1 = key1_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }

  /// 32-bit number `i` of the stream.
  uint32_t U32(uint64_t i) const { return Block(i >> 2)[i & 3]; }

  /// Uniform in [0, 1), 24 bits.
  float Uniform(uint64_t i) const { return ToUniform(U32(i)); }

  /// Standard normal number `i` (Box-Muller over the pair that holds it).
  double Normal(uint64_t i) const {
    const Polar at = NormalPair(i >> 1);
    return at.radius * ((i & 1) != 0 ? std::sin(at.angle) : std::cos(at.angle));
  }

  /// The normal numbers 2 `pair` and 2 `pair` + 1 as a point of the plane.
  struct Polar {
    double radius, angle;
  };
  Polar NormalPair(uint64_t pair) const {
    const auto block = Block(pair);
    // (0, 1]: the logarithm stays finite.
    const double u = (block[0] + 1.0) * 0x1p-32;
    return {std::sqrt(-2.0 * std::log(u)),
            block[1] * (2.0 * 3.14159265358979323846 * 0x1p-32)};
  }

  static float ToUniform(uint32_t bits) {
    return static_cast<float>(bits >> 8) * 0x1p-24f;
  }

 private:
  uint32_t key0_, key1_;
  uint64_t stream_;
};

/// A sequential reader of one stream, for code that draws a few numbers.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : philox_(seed, stream) {}
  uint32_t U32() { return philox_.U32(next_++); }
  float Uniform() { return Philox::ToUniform(U32()); }
  float Uniform(float low, float high) {
    return low + (high - low) * Uniform();
  }
  /// Uniform in [0, n), n > 0, without bias worth naming (64-bit product).
  uint64_t Below(uint64_t n) {
    const uint64_t wide = (uint64_t{U32()} << 32) | U32();
    return static_cast<uint64_t>((static_cast<unsigned __int128>(wide) * n) >>
                                 64);
  }

 private:
  Philox philox_;
  uint64_t next_ = 0;
};

/// A stream number from a name (64-bit FNV-1a), so that adding a layer does
/// not change the numbers that the other layers draw.
constexpr uint64_t StreamOf(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_RNG_H_
