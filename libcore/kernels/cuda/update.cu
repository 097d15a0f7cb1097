// SPDX-License-Identifier: Apache-2.0
// Updates of many parameters by one kernel: the blocks share the elements of
// all of them. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/halves.h"
#include "libcore/kernels/cuda/selected_rows_arguments.h"

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

struct RmspropRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float square = p.decay * t.first[i] + (1 - p.decay) * grad * grad;
    float mean = 0;
    if (t.third != nullptr)
      t.third[i] = mean = p.decay * t.third[i] + (1 - p.decay) * grad;
    const float moment = p.mu * t.second[i] +
                         rate * grad / sqrtf(square - mean * mean + p.epsilon);
    t.first[i] = square;
    t.second[i] = moment;
    return param - moment;
  }
};

struct AdagradRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float moment = t.first[i] + grad * grad;
    t.first[i] = moment;
    return param - rate * grad / (sqrtf(moment) + p.epsilon);
  }
};

struct DecayedAdagradRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float moment = p.decay * t.first[i] + (1 - p.decay) * grad * grad;
    t.first[i] = moment;
    return param - rate * grad / (sqrtf(moment) + p.epsilon);
  }
};

struct AdadeltaRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float square = p.decay * t.first[i] + (1 - p.decay) * grad * grad;
    const float u =
        -sqrtf((t.second[i] + p.epsilon) / (square + p.epsilon)) * grad;
    t.first[i] = square;
    t.second[i] = p.decay * t.second[i] + (1 - p.decay) * u * u;
    return param + rate * u;
  }
};

struct AdamaxRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float moment = p.beta1 * t.first[i] + (1 - p.beta1) * grad;
    const float norm = fmaxf(fabsf(grad), p.beta2 * t.second[i] + p.epsilon);
    t.first[i] = moment;
    t.second[i] = norm;
    return param - rate / (1 - *t.power1) * (moment / norm);
  }
};

// FTRL's power, and its root where it is that.
PD_DEVICE float PowerOf(const UpdateArgs& p, float v) {
  return p.decay == -0.5f ? sqrtf(v) : powf(v, -p.decay);
}
struct FtrlRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor& t,
                              float rate, float param, float grad, int64_t i) {
    const float l1 = p.l1 + 1e-10f, l2 = p.l2 + 1e-10f;
    const float square = t.first[i] + grad * grad;
    const float linear =
        t.second[i] + grad -
        (PowerOf(p, square) - PowerOf(p, t.first[i])) / rate * param;
    t.first[i] = square;
    t.second[i] = linear;
    if (!(fabsf(linear) > l1)) return 0.0f;
    return ((linear > 0 ? l1 : -l1) - linear) /
           (PowerOf(p, square) / rate + 2 * l2);
  }
};

struct ProximalRule {
  PD_DEVICE static float Step(const UpdateArgs& p, const UpdateTensor&,
                              float rate, float param, float grad, int64_t) {
    const float q = param - rate * grad, down = 1 + rate * p.l2;
    if (!(p.l1 > 0)) return q / down;
    const float size = fmaxf(fabsf(q) - rate * p.l1, 0.0f) / down;
    return q > 0 ? size : (q < 0 ? -size : q);
  }
};

template <typename Rule>
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
    const float rate = *t.rate;
    const int64_t begin = (block.index() - t.first_block) * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < t.n ? begin + kUpdateChunk : t.n;
    block.Each([&](int thread) {
      for (int64_t i = begin + thread; i < end; i += block.threads()) {
        const float grad = LoadFloat(t.grad_type, t.grad, i);
        t.param[i] = Rule::Step(p, t, rate, t.param[i], grad, i);
        if (t.half != nullptr) StoreFloat(t.half_type, t.half, i, t.param[i]);
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
    const float rate = *t.rate;
    ForEachSelected(block, p.rows, [&](int64_t i, int64_t first) {
      const float grad = SumFrom(p.rows, i, first, 0.0f);
      t.param[i] = Rule::Step(p.update, t, rate, t.param[i], grad, i);
      if (t.half != nullptr) StoreFloat(t.half_type, t.half, i, t.param[i]);
    });
  }
};

// adamw in lazy mode: rows that are not selected decay alone.
struct DecayOthers {
  PD_DEVICE static void Run(const Block& block, const UpdateRowsArgs& p) {
    if (p.update.skip != nullptr && *p.update.skip) return;
    const UpdateTensor& t = *p.update.tensors;
    const float part = *t.rate * t.decay;
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
      t.param[i] -= part * t.param[i];
      if (t.half != nullptr) StoreFloat(t.half_type, t.half, i, t.param[i]);
    });
  }
};

// Dense updates read the old ones, those by selected rows the new ones.
struct Powers {
  PD_DEVICE static void Run(const Block& block, const UpdateArgs& p) {
    if (p.skip != nullptr && *p.skip) return;
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
PD_KERNEL(update_rmsprop, Update<RmspropRule>, UpdateArgs)
PD_KERNEL(update_adagrad, Update<AdagradRule>, UpdateArgs)
PD_KERNEL(update_decayed_adagrad, Update<DecayedAdagradRule>, UpdateArgs)
PD_KERNEL(update_adadelta, Update<AdadeltaRule>, UpdateArgs)
PD_KERNEL(update_adamax, Update<AdamaxRule>, UpdateArgs)
PD_KERNEL(update_ftrl, Update<FtrlRule>, UpdateArgs)
PD_KERNEL(update_proximal_gd, Update<ProximalRule>, UpdateArgs)
PD_KERNEL(adam_powers, Powers, UpdateArgs)
PD_KERNEL(update_rows_sgd, UpdateRows<SgdRule>, UpdateRowsArgs)
PD_KERNEL(update_rows_adam, UpdateRows<AdamRule>, UpdateRowsArgs)
PD_KERNEL(update_rows_adagrad, UpdateRows<AdagradRule>, UpdateRowsArgs)
PD_KERNEL(decay_other_rows, DecayOthers, UpdateRowsArgs)
