// SPDX-License-Identifier: Apache-2.0
// Rows that become bytes when they are known, and what their products stand
// for. The formulas are those of ops/int8_dynamic.h, to the bit.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/exact.h"
#include "libcore/kernels/cuda/int8_arguments.h"

namespace pd::cuda {
namespace {

// NaN is not looked at.
struct Least {
  PD_DEVICE float operator()(float a, float b) const { return b < a ? b : a; }
};
struct Greatest {
  PD_DEVICE float operator()(float a, float b) const { return b > a ? b : a; }
};

PD_DEVICE int32_t ByteOf(float x, float scale, int32_t zero) {
  if (!(scale > 0)) return zero;
  const float q = Add(rintf(Div(x, scale)), static_cast<float>(zero));
  const float least = q > 0 ? q : 0.0f;  // NaN too
  return static_cast<int32_t>(least < 255 ? least : 255.0f);
}

PD_DEVICE int32_t ZeroOf(float low, float scale) {
  if (!(scale > 0)) return 0;
  const float at = Div(-low, scale);
  const float least = at > 0 ? at : 0.0f;
  return static_cast<int32_t>(rintf(least < 255 ? least : 255.0f));
}

// A block takes a row. Behind it the weights are 0: any byte would do.
struct DynamicRows {
  PD_DEVICE static void Run(const Block& block, const Int8DynamicArgs& p) {
    for (int64_t row = block.index(); row < p.rows; row += block.blocks()) {
      const float* x = p.x + row * p.size;
      PerThread<float> lows(0.0f), highs(0.0f);
      block.Each([&](int thread) {
        for (int64_t k = thread; k < p.size; k += block.threads()) {
          lows[thread] = Least()(lows[thread], x[k]);
          highs[thread] = Greatest()(highs[thread], x[k]);
        }
      });
      const float low = block.Reduce(&lows, Least());
      const float high = block.Reduce(&highs, Greatest());
      const float scale = Div(Add(high, -low), 255.0f);
      const int32_t zero = ZeroOf(low, scale);
      block.Each([&](int thread) {
        for (int64_t k = thread; k < p.depth; k += block.threads())
          p.bytes[row * p.depth + k] = static_cast<int8_t>(
              k < p.size ? ByteOf(x[k], scale, zero) - 128 : 0);
        if (thread != 0) return;
        p.scales[row] = scale;
        p.zeros[row] = zero;
      });
    }
  }
};

struct DynamicSums {
  PD_DEVICE static void Run(const Block& block, const Int8DynamicArgs& p) {
    block.Spread(p.rows * p.columns, [&](int64_t i) {
      const int64_t row = i / p.columns, o = i % p.columns;
      const int32_t sum =
          p.sums[row * p.width + o] + (128 - p.zeros[row]) * p.weight_sums[o];
      p.out[i] =
          Mul(static_cast<float>(sum), Mul(p.scales[row], p.weight_scales[o]));
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(int8_dynamic_rows, DynamicRows, Int8DynamicArgs)
PD_KERNEL(int8_dynamic_sums, DynamicSums, Int8DynamicArgs)
