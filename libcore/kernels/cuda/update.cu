// SPDX-License-Identifier: Apache-2.0
// Updates of many parameters by one kernel: the blocks share the elements of
// all of them. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/low_precision.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/selected_rows_arguments.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {
namespace {

// Numbers of the type that is computed in.
PD_REAL T* At(void* numbers) { return static_cast<T*>(numbers); }

struct SgdRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor&, T rate,
                        T param, T grad, int64_t) {
    (void)p;
    return param - rate * grad;
  }
};

struct MomentumRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T g = T(p.rescale) * grad + T(t.decay) * param;
    const T v = T(p.mu) * At<T>(t.first)[i] + g;
    At<T>(t.first)[i] = v;
    return param - rate * (p.nesterov ? g + T(p.mu) * v : v);
  }
};

struct AdamRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T correction = Sqrt(1 - *At<T>(t.power2));
    const T m1 = T(p.beta1) * At<T>(t.first)[i] + (1 - T(p.beta1)) * grad;
    const T m2 =
        T(p.beta2) * At<T>(t.second)[i] + (1 - T(p.beta2)) * grad * grad;
    At<T>(t.first)[i] = m1;
    At<T>(t.second)[i] = m2;
    return param - rate * T(t.decay) * param -
           rate * correction / (1 - *At<T>(t.power1)) *
               (m1 / (Sqrt(m2) + T(p.epsilon) * correction));
  }
};

struct RmspropRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T square =
        T(p.decay) * At<T>(t.first)[i] + (1 - T(p.decay)) * grad * grad;
    T mean = 0;
    if (t.third != nullptr)
      At<T>(t.third)[i] = mean =
          T(p.decay) * At<T>(t.third)[i] + (1 - T(p.decay)) * grad;
    const T moment = T(p.mu) * At<T>(t.second)[i] +
                     rate * grad / Sqrt(square - mean * mean + T(p.epsilon));
    At<T>(t.first)[i] = square;
    At<T>(t.second)[i] = moment;
    return param - moment;
  }
};

struct AdagradRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T moment = At<T>(t.first)[i] + grad * grad;
    At<T>(t.first)[i] = moment;
    return param - rate * grad / (Sqrt(moment) + T(p.epsilon));
  }
};

struct DecayedAdagradRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T moment =
        T(p.decay) * At<T>(t.first)[i] + (1 - T(p.decay)) * grad * grad;
    At<T>(t.first)[i] = moment;
    return param - rate * grad / (Sqrt(moment) + T(p.epsilon));
  }
};

struct AdadeltaRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T square =
        T(p.decay) * At<T>(t.first)[i] + (1 - T(p.decay)) * grad * grad;
    const T u =
        -Sqrt((At<T>(t.second)[i] + T(p.epsilon)) / (square + T(p.epsilon))) *
        grad;
    At<T>(t.first)[i] = square;
    At<T>(t.second)[i] =
        T(p.decay) * At<T>(t.second)[i] + (1 - T(p.decay)) * u * u;
    return param + rate * u;
  }
};

struct AdamaxRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T moment = T(p.beta1) * At<T>(t.first)[i] + (1 - T(p.beta1)) * grad;
    const T norm =
        Max(Abs(grad), T(p.beta2) * At<T>(t.second)[i] + T(p.epsilon));
    At<T>(t.first)[i] = moment;
    At<T>(t.second)[i] = norm;
    return param - rate / (1 - *At<T>(t.power1)) * (moment / norm);
  }
};

// FTRL's power, and its root where it is that.
PD_REAL T PowerOf(const UpdateArgs& p, T v) {
  return T(p.decay) == T(-0.5) ? Sqrt(v) : Pow(v, -T(p.decay));
}
struct FtrlRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor& t, T rate,
                        T param, T grad, int64_t i) {
    const T l1 = T(p.l1) + T(1e-10), l2 = T(p.l2) + T(1e-10);
    const T square = At<T>(t.first)[i] + grad * grad;
    const T linear =
        At<T>(t.second)[i] + grad -
        (PowerOf(p, square) - PowerOf(p, At<T>(t.first)[i])) / rate * param;
    At<T>(t.first)[i] = square;
    At<T>(t.second)[i] = linear;
    if (!(Abs(linear) > l1)) return T(0);
    return ((linear > 0 ? l1 : -l1) - linear) /
           (PowerOf(p, square) / rate + 2 * l2);
  }
};

struct ProximalRule {
  PD_REAL static T Step(const UpdateArgs& p, const UpdateTensor&, T rate,
                        T param, T grad, int64_t) {
    const T q = param - rate * grad, down = 1 + rate * T(p.l2);
    if (!(T(p.l1) > 0)) return q / down;
    const T size = Max(Abs(q) - rate * T(p.l1), T(0)) / down;
    return q > 0 ? size : (q < 0 ? -size : q);
  }
};

// A rate may be a float where all else is doubles.
PD_REAL T RateOf(const UpdateTensor& t) {
  return t.rate_type == NumberType::kFloat64
             ? static_cast<T>(*static_cast<const double*>(t.rate))
             : static_cast<T>(*static_cast<const float*>(t.rate));
}

// The parameter, and its rounded copy, which only floats have.
PD_REAL void SetParam(const UpdateTensor& t, int64_t i, T value) {
  At<T>(t.param)[i] = value;
  if (t.half != nullptr)
    StoreFloat(t.half_type, t.half, i, static_cast<float>(value));
}
PD_DEVICE float GradOf(const UpdateTensor& t, int64_t i, float) {
  return LoadFloat(t.grad_type, t.grad, i);
}
PD_DEVICE double GradOf(const UpdateTensor& t, int64_t i, double) {
  return static_cast<const double*>(t.grad)[i];
}

template <typename Rule, typename T>
struct Update {
  PD_DEVICE static void Run(const Block& block, const UpdateArgs& p) {
    if (p.skip != nullptr && *p.skip) return;
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
    const T rate = RateOf<T>(t);
    const int64_t begin = (block.index() - t.first_block) * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < t.n ? begin + kUpdateChunk : t.n;
    block.Each([&](int thread) {
      for (int64_t i = begin + thread; i < end; i += block.threads()) {
        const T grad = GradOf(t, i, T());
        SetParam(t, i, Rule::Step(p, t, rate, At<T>(t.param)[i], grad, i));
      }
    });
  }
};

// The rows that are there, by their sums.
template <typename Rule>
struct UpdateRows {
  PD_DEVICE static void Run(const Block& block, const UpdateRowsArgs& p) {
    if (p.update.skip != nullptr && *p.update.skip) return;
    const UpdateTensor& t = *p.update.tensors;
    const float rate = RateOf<float>(t);
    ForEachSelected(block, p.rows, [&](int64_t i, int64_t first) {
      const float grad = SumFrom(p.rows, i, first, 0.0f);
      SetParam(t, i,
               Rule::Step(p.update, t, rate, At<float>(t.param)[i], grad, i));
    });
  }
};

// adamw in lazy mode: rows that are not selected decay alone.
struct DecayOthers {
  PD_DEVICE static void Run(const Block& block, const UpdateRowsArgs& p) {
    if (p.update.skip != nullptr && *p.update.skip) return;
    const UpdateTensor& t = *p.update.tensors;
    const float part = RateOf<float>(t) * static_cast<float>(t.decay);
    const float* const param = At<float>(t.param);
    block.Spread(t.n, [&](int64_t i) {
      const int64_t row = i / p.rows.width;
      int64_t low = 0, high = p.rows.n;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (p.rows.rows[p.rows.places[middle]] < row)
          low = middle + 1;
        else
          high = middle;
      }
      if (low < p.rows.n && p.rows.rows[p.rows.places[low]] == row) return;
      SetParam(t, i, param[i] - part * param[i]);
    });
  }
};

// Dense updates read the old ones, those by selected rows the new ones.
template <typename T>
struct Powers {
  PD_DEVICE static void Run(const Block& block, const UpdateArgs& p) {
    if (p.skip != nullptr && *p.skip) return;
    block.Spread(p.count, [&](int64_t i) {
      *At<T>(p.tensors[i].power1) *= T(p.beta1);
      *At<T>(p.tensors[i].power2) *= T(p.beta2);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

// A template's comma would end the macro's argument.
#define PD_UPDATE(name, Rule, suffix, T)    \
  using Rule##suffix##On = Update<Rule, T>; \
  PD_KERNEL(update_##name##suffix, Rule##suffix##On, UpdateArgs)
#define PD_UPDATES(suffix, T)                               \
  PD_UPDATE(sgd, SgdRule, suffix, T)                        \
  PD_UPDATE(momentum, MomentumRule, suffix, T)              \
  PD_UPDATE(adam, AdamRule, suffix, T)                      \
  PD_UPDATE(rmsprop, RmspropRule, suffix, T)                \
  PD_UPDATE(adagrad, AdagradRule, suffix, T)                \
  PD_UPDATE(decayed_adagrad, DecayedAdagradRule, suffix, T) \
  PD_UPDATE(adadelta, AdadeltaRule, suffix, T)              \
  PD_UPDATE(adamax, AdamaxRule, suffix, T)                  \
  PD_UPDATE(ftrl, FtrlRule, suffix, T)                      \
  PD_UPDATE(proximal_gd, ProximalRule, suffix, T)           \
  PD_KERNEL(adam_powers##suffix, Powers<T>, UpdateArgs)
PD_UPDATES(, float)
PD_UPDATES(_64, double)
PD_KERNEL(update_rows_sgd, UpdateRows<SgdRule>, UpdateRowsArgs)
PD_KERNEL(update_rows_adam, UpdateRows<AdamRule>, UpdateRowsArgs)
PD_KERNEL(update_rows_adagrad, UpdateRows<AdagradRule>, UpdateRowsArgs)
PD_KERNEL(decay_other_rows, DecayOthers, UpdateRowsArgs)
