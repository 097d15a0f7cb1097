// SPDX-License-Identifier: Apache-2.0
// Updates of many parameters by one kernel: the blocks share the elements of
// all of them. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {
namespace {

struct SgdRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor&,
                              float rate, float param, float grad, int64_t) {
    (void)p;
    return param - rate * grad;
  }
};

struct MomentumRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float g = p.rescale * grad + t.decay * param;
    const float v = p.mu * t.first[i] + g;
    t.first[i] = v;
    return param - rate * (p.nesterov ? g + p.mu * v : v);
  }
};

struct AdamRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float correction = sqrtf(1 - *t.power2);
    const float m1 = p.beta1 * t.first[i] + (1 - p.beta1) * grad;
    const float m2 = p.beta2 * t.second[i] + (1 - p.beta2) * grad * grad;
    t.first[i] = m1;
    t.second[i] = m2;
    return param - rate * t.decay * param -
           rate * correction / (1 - *t.power1) *
               (m1 / (sqrtf(m2) + p.epsilon * correction));
  }
};

template <typename Rule>
struct Update {
  PD_DEVICE static void Run(const Block& block, const UpdateArgs& p) {
    // The tensor of this block: the last that begins at it or before.
    int low = 0, high = p.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (p.tensors[middle].first_block <= block.index())
        low = middle;
      else
        high = middle;
    }
    const UpdateTensor& t = p.tensors[low];
    const float rate = *p.rate;
    const int64_t begin = (block.index() - t.first_block) * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < t.n ? begin + kUpdateChunk : t.n;
    block.Each([&](int thread) {
      for (int64_t i = begin + thread; i < end; i += block.threads())
        t.param[i] = Rule::Step(p, t, rate, t.param[i], t.grad[i], i);
    });
  }
};

// After the update: it reads the old ones.
struct Powers {
  PD_DEVICE static void Run(const Block& block, const UpdateArgs& p) {
    block.Spread(p.count, [&](int64_t i) {
      *p.tensors[i].power1 *= p.beta1;
      *p.tensors[i].power2 *= p.beta2;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(update_sgd, Update<SgdRule>, UpdateArgs)
PD_KERNEL(update_momentum, Update<MomentumRule>, UpdateArgs)
PD_KERNEL(update_adam, Update<AdamRule>, UpdateArgs)
PD_KERNEL(adam_powers, Powers, UpdateArgs)
