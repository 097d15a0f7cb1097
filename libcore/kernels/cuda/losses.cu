// SPDX-License-Identifier: Apache-2.0
// Losses of a prediction and a label, element by element, and sums of squares
// with what is scaled by them. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

PD_DEVICE float Sign(float y) { return 2 * y - 1; }
PD_DEVICE float AtLeast(float x, float least) { return x > least ? x : least; }
PD_DEVICE float Clamp(float x, float most) {
  return x > most ? most : (x < -most ? -most : x);
}
PD_DEVICE bool Ignored(float y, float index) {
  return fabsf(y - index) < 1e-5f;
}

// X(name, loss of x and y, its slope by x): a is an attribute.
#define PD_LOSSES(X)                                                        \
  X(sigmoid_cross_entropy_with_logits,                                      \
    Ignored(y, a) ? 0.0f : AtLeast(x, 0) - x * y + log1pf(expf(-fabsf(x))), \
    Ignored(y, a) ? 0.0f : 1 / (1 + expf(-x)) - y)                          \
  X(bce_loss,                                                               \
    (y - 1) * AtLeast(log1pf(-x), -100) - y * AtLeast(logf(x), -100),       \
    (x - y) / AtLeast((1 - x) * x, 1e-12f))                                 \
  X(log_loss, -y* logf(x + a) - (1 - y) * logf(1 - x + a),                  \
    (1 - y) / (1 - x + a) - y / (x + a))                                    \
  X(hinge_loss, AtLeast(1 - Sign(y) * x, 0),                                \
    1 - Sign(y) * x > 0 ? -Sign(y) : 0.0f)                                  \
  X(huber_loss,                                                             \
    fabsf(y - x) <= a ? 0.5f * (y - x) * (y - x)                            \
                      : a * (fabsf(y - x) - 0.5f * a),                      \
    Clamp(x, a) * y)

#define PD_LOSS(name, loss, slope)                        \
  struct Loss_##name {                                    \
    PD_DEVICE static float F(float x, float y, float a) { \
      (void)a;                                            \
      return loss;                                        \
    }                                                     \
    PD_DEVICE static float D(float x, float y, float a) { \
      (void)a;                                            \
      return slope;                                       \
    }                                                     \
  };
PD_LOSSES(PD_LOSS)
#undef PD_LOSS

template <typename Loss>
struct LossForward {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const float x = p.x[i];
      if (p.bad != nullptr && !(x >= 0 && x <= 1)) *p.bad = 1;
      p.out[i] = Loss::F(x, p.y[i], p.a);
      if (p.second != nullptr) p.second[i] = p.y[i] - x;
    });
  }
};
// Without y it is the number b.
template <typename Loss>
struct LossBackward {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      p.out[i] =
          p.dout[i] * Loss::D(p.x[i], p.y != nullptr ? p.y[i] : p.b, p.a);
    });
  }
};

struct KldivLoss {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const float y = p.y[i];
      p.out[i] = y > 0 ? y * (logf(y) - p.x[i]) : 0.0f;
    });
  }
};
// The loss has a gradient for each element, or, where a is 1, one for all.
struct KldivGrad {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const float y = p.y[i];
      p.out[i] = y > 0 ? -y * (p.dout[p.a == 1 ? 0 : i] * p.b) : 0.0f;
    });
  }
};

// out[block] = the sum of squares of what the block meets.
struct Squares {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    PerThread<float> part(0.0f);
    const int64_t step = block.blocks() * block.threads();
    block.Each([&](int thread) {
      for (int64_t i = block.index() * block.threads() + thread; i < p.n;
           i += step)
        part[thread] += p.x[i] * p.x[i];
    });
    const float sum = block.Reduce(&part, Plus());
    block.Each([&](int thread) {
      if (thread == 0) p.out[block.index()] = sum;
    });
  }
};

// out = x * a / norm where the norm, the root of *y, is larger than a.
struct ScaleToNorm {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    const float norm = sqrtf(*p.y);
    const float factor = norm > p.a ? p.a / norm : 1.0f;
    block.Spread(p.n, [&](int64_t i) { p.out[i] = p.x[i] * factor; });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_LOSS(name, loss, slope)                    \
  PD_KERNEL(name, LossForward<Loss_##name>, LossArgs) \
  PD_KERNEL(name##_grad, LossBackward<Loss_##name>, LossArgs)
PD_LOSSES(PD_LOSS)
#undef PD_LOSS
PD_KERNEL(kldiv_loss, KldivLoss, LossArgs)
PD_KERNEL(kldiv_loss_grad, KldivGrad, LossArgs)
PD_KERNEL(squares, Squares, LossArgs)
PD_KERNEL(scale_to_norm, ScaleToNorm, LossArgs)
