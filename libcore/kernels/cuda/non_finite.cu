// SPDX-License-Identifier: Apache-2.0
// Looks through values for NaN and infinity: by the bits, so that numbers of
// any size cost what it costs to read them.
#include <cstdint>
#include <cstring>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {
namespace {

PD_DEVICE void AddTo(uint32_t* sum, uint32_t value) {
#ifdef __CUDACC__
  atomicAdd(sum, value);
#else
  *sum += value;
#endif
}

PD_DEVICE void RaiseTo(uint32_t* most, uint32_t value) {
#ifdef __CUDACC__
  atomicMax(most, value);
#else
  if (*most < value) *most = value;
#endif
}

// The sign, the exponent and the fraction as those of a float: what matters of
// a double is whether it is finite, and about how large.
struct OfFloat {
  using Bits = uint32_t;
  PD_DEVICE static uint32_t AsFloat(Bits bits) { return bits; }
};
struct OfBrainFloat {
  using Bits = uint16_t;
  PD_DEVICE static uint32_t AsFloat(Bits bits) { return uint32_t{bits} << 16; }
};
struct OfHalf {
  using Bits = uint16_t;
  PD_DEVICE static uint32_t AsFloat(Bits bits) {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    if (exponent == 31) return sign | 0x7f800000u | fraction << 13;
    if (exponent == 0) {
      const float value = static_cast<float>(fraction) * 0x1p-24f;
      uint32_t small = 0;
      memcpy(&small, &value, sizeof(small));
      return sign | small;
    }
    return sign | (exponent + 112) << 23 | fraction << 13;
  }
};
struct OfDouble {
  using Bits = uint64_t;
  PD_DEVICE static uint32_t AsFloat(Bits bits) {
    constexpr uint64_t kExponent = 0x7ff0000000000000ull;
    const uint32_t sign = static_cast<uint32_t>(bits >> 63) << 31;
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    if (magnitude > kExponent) return sign | 0x7fc00000u;
    if (magnitude == kExponent) return sign | 0x7f800000u;
    double value = 0;
    memcpy(&value, &magnitude, sizeof(value));
    if (value > 3.4028234663852886e38) value = 3.4028234663852886e38;
    const float narrow = static_cast<float>(value);
    uint32_t out = 0;
    memcpy(&out, &narrow, sizeof(out));
    return sign | out;
  }
};

struct FindNonFinite {
  template <typename Of>
  PD_DEVICE static void Pass(const Block& block, const NonFiniteArgs::Value& v) {
    constexpr uint32_t kInfinity = 0x7f800000u;
    const auto* bits = static_cast<const typename Of::Bits*>(v.numbers);
    const int64_t step = block.blocks() * block.threads();
    PerThread<uint32_t> largest(0), nan(0), inf(0), plus(0);
    block.Each([&](int thread) {
      for (int64_t i = block.index() * block.threads() + thread; i < v.n;
           i += step) {
        const uint32_t number = Of::AsFloat(bits[i]);
        const uint32_t magnitude = number & 0x7fffffffu;
        if (magnitude > largest[thread]) largest[thread] = magnitude;
        if (magnitude < kInfinity) continue;
        nan[thread] += magnitude > kInfinity;
        inf[thread] += magnitude == kInfinity;
        plus[thread] += number == kInfinity;
      }
    });
    const auto more = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
    const auto sum = [](uint32_t a, uint32_t b) { return a + b; };
    const uint32_t most = block.Reduce(&largest, more);
    uint32_t counts[3] = {0, 0, 0};
    if (most >= kInfinity) {  // alike in all threads of the block
      counts[0] = block.Reduce(&nan, sum);
      counts[1] = block.Reduce(&inf, sum);
      counts[2] = block.Reduce(&plus, sum);
    }
    block.Each([&](int thread) {
      if (thread != 0) return;
      RaiseTo(v.found, most);
      for (int i = 0; i < 3; ++i)
        if (counts[i] > 0) AddTo(v.found + 1 + i, counts[i]);
    });
  }

  PD_DEVICE static void Run(const Block& block, const NonFiniteArgs& p) {
    for (int i = 0; i < p.count; ++i) {
      const NonFiniteArgs::Value& v = p.values[i];
      if (v.kind == NonFiniteArgs::kFloat)
        Pass<OfFloat>(block, v);
      else if (v.kind == NonFiniteArgs::kDouble)
        Pass<OfDouble>(block, v);
      else if (v.kind == NonFiniteArgs::kHalf)
        Pass<OfHalf>(block, v);
      else
        Pass<OfBrainFloat>(block, v);
    }
  }
};

}  // namespace
}  // namespace pd::cuda

PD_KERNEL(find_non_finite, pd::cuda::FindNonFinite, pd::cuda::NonFiniteArgs)
