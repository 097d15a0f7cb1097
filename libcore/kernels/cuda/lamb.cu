// SPDX-License-Identifier: Apache-2.0
// Updates whose step depends on the norms of the whole parameter and of its
// step: LAMB and LARS. Parts of both sums of squares first, in one order; then
// every block adds the parts up for itself. The formulas are those of
// libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/update_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// The moments, and LAMB's step before it is scaled.
struct LambMoments {
  PD_DEVICE static void Run(const Block& block, const TrustArgs& p) {
    const float down1 = 1 - *p.power1, down2 = 1 - *p.power2;
    block.Spread(p.n, [&](int64_t i) {
      const float g = p.grad[i];
      const float m1 = p.beta1 * p.first[i] + (1 - p.beta1) * g;
      const float m2 = p.beta2 * p.second[i] + (1 - p.beta2) * g * g;
      p.first[i] = m1;
      p.second[i] = m2;
      p.step[i] =
          m1 / down1 / (sqrtf(m2 / down2) + p.epsilon) + p.decay * p.param[i];
    });
  }
};

// parts[block] and parts[kTrustParts + block]: the squares of the parameter and
// of its step that the block meets.
struct TrustSquares {
  PD_DEVICE static void Run(const Block& block, const TrustArgs& p) {
    PerThread<float> sizes(0.0f), steps(0.0f);
    const int64_t stride = block.blocks() * block.threads();
    block.Each([&](int thread) {
      for (int64_t i = block.index() * block.threads() + thread; i < p.n;
           i += stride) {
        sizes[thread] += p.param[i] * p.param[i];
        steps[thread] += p.step[i] * p.step[i];
      }
    });
    const float size = block.Reduce(&sizes, Plus());
    const float step = block.Reduce(&steps, Plus());
    block.Each([&](int thread) {
      if (thread != 0) return;
      p.parts[block.index()] = size;
      p.parts[kTrustParts + block.index()] = step;
    });
  }
};

PD_DEVICE float NormOf(const Block& block, const float* parts, int64_t count) {
  return sqrtf(SumOf(block, count, [&](int64_t i) { return parts[i]; }));
}

struct LambUpdate {
  PD_DEVICE static void Run(const Block& block, const TrustArgs& p) {
    float rate = *p.rate;
    if (p.adapts != 0) {
      const float size = NormOf(block, p.parts, p.blocks);
      const float step = NormOf(block, p.parts + kTrustParts, p.blocks);
      if (size > 0 && step > 0) rate *= size / step;
    }
    block.Spread(p.n, [&](int64_t i) {
      p.param[i] -= rate * p.step[i];
      if (p.half != nullptr) StoreFloat(p.half_type, p.half, i, p.param[i]);
    });
  }
};

struct LambPowers {
  PD_DEVICE static void Run(const Block& block, const TrustArgs& p) {
    block.Spread(1, [&](int64_t) {
      *p.power1 *= p.beta1;
      *p.power2 *= p.beta2;
    });
  }
};

// Its step is the gradient.
struct LarsUpdate {
  PD_DEVICE static void Run(const Block& block, const TrustArgs& p) {
    const float size = NormOf(block, p.parts, p.blocks);
    const float slope =
        NormOf(block, p.parts + kTrustParts, p.blocks) * fabsf(p.rescale);
    float rate = *p.rate;
    if (p.decay > 0 && size > 0 && slope > 0)
      rate *= p.coeff * size / (slope + p.decay * size + p.epsilon);
    block.Spread(p.n, [&](int64_t i) {
      const float v = p.mu * p.first[i] +
                      rate * (p.rescale * p.grad[i] + p.decay * p.param[i]);
      p.first[i] = v;
      p.param[i] -= v;
      if (p.half != nullptr) StoreFloat(p.half_type, p.half, i, p.param[i]);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(lamb_moments, LambMoments, TrustArgs)
PD_KERNEL(trust_squares, TrustSquares, TrustArgs)
PD_KERNEL(update_lamb, LambUpdate, TrustArgs)
PD_KERNEL(lamb_powers, LambPowers, TrustArgs)
PD_KERNEL(update_lars, LarsUpdate, TrustArgs)
