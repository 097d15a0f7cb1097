// SPDX-License-Identifier: Apache-2.0
// Quantization simulated in floating point. The formulas are those of
// libcore/ops (quantize/quantize.h), to the bit.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/exact.h"
#include "libcore/kernels/cuda/fake_quantize_arguments.h"

namespace pd::cuda {
namespace {

// NaN is not looked at.
struct Greatest {
  PD_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};

// parts[block] = the greatest of what the block meets.
struct AbsMaxParts {
  PD_DEVICE static void Run(const Block& block, const QuantizeArgs& p) {
    const auto* x = static_cast<const float*>(p.x);
    PerThread<float> part(0.0f);
    const int64_t step = block.blocks() * block.threads();
    block.Each([&](int thread) {
      for (int64_t i = block.index() * block.threads() + thread; i < p.n;
           i += step)
        part[thread] = Greatest()(part[thread], fabsf(x[i]));
    });
    const float most = block.Reduce(&part, Greatest());
    block.Each([&](int thread) {
      if (thread == 0) p.parts[block.index()] = most;
    });
  }
};

// A block takes a channel.
struct AbsMaxChannels {
  PD_DEVICE static void Run(const Block& block, const QuantizeArgs& p) {
    const auto* x = static_cast<const float*>(p.x);
    const int64_t count = p.n / p.channels;
    for (int64_t c = block.index(); c < p.channels; c += block.blocks()) {
      PerThread<float> part(0.0f);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < count; i += block.threads()) {
          const int64_t at =
              (i / p.inner * p.channels + c) * p.inner + i % p.inner;
          part[thread] = Greatest()(part[thread], fabsf(x[at]));
        }
      });
      const float most = block.Reduce(&part, Greatest());
      block.Each([&](int thread) {
        if (thread == 0) p.out_scale[c] = most;
      });
    }
  }
};

// The scale of the whole tensor from the parts.
struct ScaleOfParts {
  PD_DEVICE static void Run(const Block& block, const QuantizeArgs& p) {
    PerThread<float> part(0.0f);
    block.Each([&](int thread) {
      for (int64_t i = thread; i < p.blocks; i += block.threads())
        part[thread] = Greatest()(part[thread], p.parts[i]);
    });
    const float most = block.Reduce(&part, Greatest());
    block.Each([&](int thread) {
      if (thread != 0) return;
      if (p.in_state == nullptr) {
        *p.out_scale = most;
        return;
      }
      const float state = Add(Mul(p.rate, *p.in_state), 1.0f);
      const float accum = Add(Mul(p.rate, *p.in_accum), most);
      *p.out_state = state;
      *p.out_accum = accum;
      *p.out_scale = Div(accum, state);
    });
  }
};

PD_DEVICE float ScaleOf(const QuantizeArgs& p, int64_t i) {
  return p.scales[p.channels == 1 ? 0 : i / p.inner % p.channels];
}

PD_DEVICE float Quantized(const QuantizeArgs& p, float scale, float x) {
  const float factor =
      Mul(p.levels, Div(1.0f, scale <= 1e-30f ? Add(scale, 1e-6f) : scale));
  float q;
  if (p.to_even != 0) {
    q = rintf(Mul(factor, x));
    q = p.levels < q ? p.levels : q;
    q = q < -p.levels - 1 ? -p.levels - 1 : q;
  } else {
    float v = scale < x ? scale : x;
    v = v < -scale ? -scale : v;
    q = roundf(Mul(factor, v));
  }
  return p.back != 0 ? Div(Mul(q, scale), p.levels) : q;
}

struct Quantize {
  PD_DEVICE static void Run(const Block& block, const QuantizeArgs& p) {
    const auto* x = static_cast<const float*>(p.x);
    block.Spread(p.n, [&](int64_t i) {
      const float scale = ScaleOf(p, i);
      p.out[i] = Quantized(p, scale, x[i]);
      // Of the whole tensor, a given scale is handed on.
      if (i == 0 && p.out_scale != nullptr && p.out_scale != p.scales)
        *p.out_scale = scale;
    });
  }
};

template <typename From>
struct Dequantize {
  PD_DEVICE static void Run(const Block& block, const QuantizeArgs& p) {
    const auto* x = static_cast<const From*>(p.x);
    block.Spread(p.n, [&](int64_t i) {
      float v = Mul(static_cast<float>(x[i]), ScaleOf(p, i));
      if (p.whole != nullptr) v = Mul(v, *p.whole);
      p.out[i] = Div(v, p.levels);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(abs_max_parts, AbsMaxParts, QuantizeArgs)
PD_KERNEL(abs_max_channels, AbsMaxChannels, QuantizeArgs)
PD_KERNEL(scale_of_parts, ScaleOfParts, QuantizeArgs)
PD_KERNEL(quantize, Quantize, QuantizeArgs)
PD_KERNEL(dequantize_float32, Dequantize<float>, QuantizeArgs)
PD_KERNEL(dequantize_int8, Dequantize<int8_t>, QuantizeArgs)
PD_KERNEL(dequantize_int16, Dequantize<int16_t>, QuantizeArgs)
PD_KERNEL(dequantize_int32, Dequantize<int32_t>, QuantizeArgs)
