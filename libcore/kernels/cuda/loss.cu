// SPDX-License-Identifier: Apache-2.0
// Losses of a prediction and a label, element by element, and sums of squares
// with what is scaled by them. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

PD_REAL T Sign(T y) { return 2 * y - 1; }
PD_REAL T AtLeast(T x, T least) { return x > least ? x : least; }
PD_REAL T Clamp(T x, T most) {
  return x > most ? most : (x < -most ? -most : x);
}
PD_REAL bool Ignored(T y, T index) { return Abs(y - index) < T(1e-5); }

// X(name, loss of x and y, its slope by x): a is an attribute, T the type.
#define PD_LOSSES(X)                                                       \
  X(sigmoid_cross_entropy_with_logits,                                     \
    Ignored(y, a) ? T(0) : AtLeast(x, T(0)) - x * y + Log1p(Exp(-Abs(x))), \
    Ignored(y, a) ? T(0) : 1 / (1 + Exp(-x)) - y)                          \
  X(bce_loss,                                                              \
    (y - 1) * AtLeast(Log1p(-x), T(-100)) - y * AtLeast(Log(x), T(-100)),  \
    (x - y) / AtLeast((1 - x) * x, T(1e-12)))                              \
  X(log_loss, -y* Log(x + a) - (1 - y) * Log(1 - x + a),                   \
    (1 - y) / (1 - x + a) - y / (x + a))                                   \
  X(hinge_loss, AtLeast(1 - Sign(y) * x, T(0)),                            \
    1 - Sign(y) * x > 0 ? -Sign(y) : T(0))                                 \
  X(huber_loss,                                                            \
    Abs(y - x) <= a ? T(0.5) * (y - x) * (y - x)                           \
                    : a * (Abs(y - x) - T(0.5) * a),                       \
    Clamp(x, a) * y)

#define PD_LOSS(name, loss, slope)      \
  struct Loss_##name {                  \
    PD_REAL static T F(T x, T y, T a) { \
      (void)a;                          \
      return loss;                      \
    }                                   \
    PD_REAL static T D(T x, T y, T a) { \
      (void)a;                          \
      return slope;                     \
    }                                   \
  };
PD_LOSSES(PD_LOSS)
#undef PD_LOSS

template <typename Loss, typename T>
struct LossForward {
  PD_DEVICE static void Run(const Block& block, const LossArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      const T x = p.x[i];
      if (p.bad != nullptr && !(x >= 0 && x <= 1)) *p.bad = 1;
      p.out[i] = Loss::F(x, T(p.y[i]), p.a);
      if (p.second != nullptr) p.second[i] = p.y[i] - x;
    });
  }
};
// Without y it is the number b.
template <typename Loss, typename T>
struct LossBackward {
  PD_DEVICE static void Run(const Block& block, const LossArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      p.out[i] =
          p.dout[i] * Loss::D(T(p.x[i]), p.y != nullptr ? T(p.y[i]) : p.b, p.a);
    });
  }
};

template <typename T>
struct KldivLoss {
  PD_DEVICE static void Run(const Block& block, const LossArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      const T y = p.y[i];
      p.out[i] = y > 0 ? y * (Log(y) - p.x[i]) : T(0);
    });
  }
};
// The loss has a gradient for each element, or, where a is 1, one for all.
template <typename T>
struct KldivGrad {
  PD_DEVICE static void Run(const Block& block, const LossArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      const T y = p.y[i];
      p.out[i] = y > 0 ? -y * (p.dout[p.a == 1 ? 0 : i] * p.b) : T(0);
    });
  }
};

// sigmoid_cross_entropy_with_logits by weights, all divided by *divisor; either
// may be null.
PD_DEVICE float WeightedSigmoid(const WeightedArgs& p, int64_t i, bool slope) {
  const float x = p.x[i], y = p.y[i];
  if (Ignored(y, p.ignore)) return 0;
  const float f = p.weight != nullptr ? p.weight[i] : 1.0f;
  const float value =
      slope ? f / (1 + expf(-x)) - y
            : AtLeast(x, 0.0f) - x * y + log1pf(expf(-fabsf(x))) * f;
  return (slope ? p.dout[i] * value : value) /
         (p.divisor != nullptr ? *p.divisor : 1.0f);
}
struct WeightedLoss {
  PD_DEVICE static void Run(const Block& block, const WeightedArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      p.out[i] = WeightedSigmoid(p, i, p.dout != nullptr);
    });
  }
};
// One block: the number of labels that count.
struct CountLabels {
  PD_DEVICE static void Run(const Block& block, const WeightedArgs& p) {
    PerThread<int64_t> part(0);
    block.Each([&](int thread) {
      for (int64_t i = thread; i < p.n; i += block.threads())
        part[thread] += Ignored(p.y[i], p.ignore) ? 0 : 1;
    });
    const int64_t count = block.Reduce(&part, Plus());
    block.Each([&](int thread) {
      if (thread == 0) *p.divisor = AtLeast(static_cast<float>(count), 1e-5f);
    });
  }
};

PD_DEVICE int64_t LabelOf(const NllArgs& p, int64_t line) {
  return p.label64 != 0 ? static_cast<const int64_t*>(p.label)[line]
                        : static_cast<const int32_t*>(p.label)[line];
}
// One block, with sums in doubles as in libcore/ops.
struct NllLoss {
  PD_DEVICE static void Run(const Block& block, const NllArgs& p) {
    PerThread<double> losses(0.0), weights(0.0);
    block.Each([&](int thread) {
      for (int64_t line = thread; line < p.lines; line += block.threads()) {
        const int64_t label = LabelOf(p, line);
        const bool good = label >= 0 && label < p.n;
        float loss = 0;
        if (label != p.ignore && !good) *p.bad = 1;
        if (label != p.ignore && good) {
          const float w = p.weight != nullptr ? p.weight[label] : 1.0f;
          const int64_t at =
              (line / p.inner * p.n + label) * p.inner + line % p.inner;
          loss = -w * p.x[at];
          weights[thread] += w;
        }
        losses[thread] += loss;
        if (p.each != 0) p.out[line] = loss;
      }
    });
    const double sum = block.Reduce(&losses, Plus());
    const double weight = block.Reduce(&weights, Plus());
    block.Each([&](int thread) {
      if (thread != 0) return;
      if (p.each == 0)
        *p.out =
            static_cast<float>(p.mean != 0 && weight != 0 ? sum / weight : sum);
      if (p.total != nullptr) *p.total = static_cast<float>(weight);
    });
  }
};
struct NllGrad {
  PD_DEVICE static void Run(const Block& block, const NllArgs& p) {
    const float divisor = p.mean != 0 && *p.total != 0 ? *p.total : 1.0f;
    block.Spread(p.lines * p.n, [&](int64_t e) {
      const int64_t c = e / p.inner % p.n;
      const int64_t line = e / p.inner / p.n * p.inner + e % p.inner;
      const int64_t label = LabelOf(p, line);
      if (label != p.ignore && (label < 0 || label >= p.n)) *p.bad = 1;
      const float w = p.weight != nullptr ? p.weight[c] : 1.0f;
      p.out[e] = label == c && label != p.ignore
                     ? -w * p.dout[p.each != 0 ? line : 0] / divisor
                     : 0.0f;
    });
  }
};

// out[block] = the sum of squares of what the block meets.
template <typename T>
struct Squares {
  PD_DEVICE static void Run(const Block& block, const LossArgsOf<T>& p) {
    PerThread<T> part(0);
    const int64_t step = block.blocks() * block.threads();
    block.Each([&](int thread) {
      for (int64_t i = block.index() * block.threads() + thread; i < p.n;
           i += step)
        part[thread] += p.x[i] * p.x[i];
    });
    const T sum = block.Reduce(&part, Plus());
    block.Each([&](int thread) {
      if (thread == 0) p.out[block.index()] = sum;
    });
  }
};

// out = x * a / norm where the norm, the root of *y, is larger than a.
struct ScaleToNorm {
  PD_DEVICE static void Run(const Block& block, const LossArgs& p) {
    const float norm = Sqrt(p.y[0]);
    const float factor = norm > p.a ? p.a / norm : 1.0f;
    block.Spread(p.n, [&](int64_t i) { p.out[i] = p.x[i] * factor; });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

// A template's comma would end the macro's argument.
#define PD_LOSS_OF(name, suffix, T)                              \
  using Forward_##name##suffix = LossForward<Loss_##name, T>;    \
  using Backward_##name##suffix = LossBackward<Loss_##name, T>;  \
  PD_KERNEL(name##suffix, Forward_##name##suffix, LossArgsOf<T>) \
  PD_KERNEL(name##_grad##suffix, Backward_##name##suffix, LossArgsOf<T>)
#define PD_LOSS(name, loss, slope) \
  PD_LOSS_OF(name, , float)        \
  PD_LOSS_OF(name, _64, double)
PD_LOSSES(PD_LOSS)
#undef PD_LOSS
PD_KERNEL(weighted_sigmoid, WeightedLoss, WeightedArgs)
PD_KERNEL(count_labels, CountLabels, WeightedArgs)
PD_KERNEL(nll_loss, NllLoss, NllArgs)
PD_KERNEL(nll_loss_grad, NllGrad, NllArgs)
#define PD_SUMS(suffix, T)                                        \
  PD_KERNEL(kldiv_loss##suffix, KldivLoss<T>, LossArgsOf<T>)      \
  PD_KERNEL(kldiv_loss_grad##suffix, KldivGrad<T>, LossArgsOf<T>) \
  PD_KERNEL(squares##suffix, Squares<T>, LossArgsOf<T>)
PD_SUMS(, float)
PD_SUMS(_64, double)
PD_KERNEL(scale_to_norm, ScaleToNorm, LossArgs)
