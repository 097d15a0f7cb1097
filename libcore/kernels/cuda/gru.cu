// SPDX-License-Identifier: Apache-2.0
// A GRU's step for the sequences that are running, in two parts with a product
// between them, and its gradient. The formulas are those of
// libcore/ops/recurrent/gru_cell.h.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/lod_rnn_arguments.h"

namespace pd::cuda {
namespace {

PD_DEVICE int64_t RowOf(const int64_t* rows, int64_t r) {
  return rows == nullptr ? r : rows[r];
}

// The sum of what comes in, before the activation; `product` is its part of h.
PD_DEVICE float GateSum(const GruArgs& p, int64_t r, int64_t column,
                        float product) {
  float x = p.x[RowOf(p.rows, r) * 3 * p.n + column];
  if (p.bias != nullptr) x += p.bias[column];
  return x + product;
}

// u, r and r * h; a thread takes an element of the state.
struct GruGates {
  PD_DEVICE static void Run(const Block& block, const GruArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n;
      const float* const products = p.products + r * 2 * n + k;
      float* const gates = p.gates + r * 3 * n + k;
      gates[0] = Activate(p.gate, GateSum(p, r, k, products[0]));
      gates[n] = Activate(p.gate, GateSum(p, r, n + k, products[n]));
      p.reset[e] = gates[n] * p.h[e];
    });
  }
};

struct GruState {
  PD_DEVICE static void Run(const Block& block, const GruArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n;
      float* const gates = p.gates + r * 3 * n + k;
      const float u = gates[0], h = p.h[e];
      const float c = Activate(p.node, GateSum(p, r, 2 * n + k, p.products[e]));
      gates[2 * n] = c;
      const float next =
          p.origin != 0 ? u * h + (1 - u) * c : (1 - u) * h + u * c;
      if (p.batch_hidden != nullptr) p.batch_hidden[e] = next;
      p.hidden[RowOf(p.rows, r) * n + k] = next;
    });
  }
};

struct GruStateGrad {
  PD_DEVICE static void Run(const Block& block, const GruGradArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n, row = RowOf(p.rows, r);
      const float u = p.gates[r * 3 * n + k];
      const float c = p.gates[r * 3 * n + 2 * n + k];
      const float h = p.h[e];
      float dnext = p.dhidden[row * n + k];
      if (p.follows != 0) dnext += p.dh[e] + p.products[e];
      const float sign = p.origin != 0 ? -1.0f : 1.0f;
      const float d_u = sign * dnext * (c - h) * ActivationSlope(p.gate, u);
      const float d_c =
          dnext * (p.origin != 0 ? 1 - u : u) * ActivationSlope(p.node, c);
      p.d_ur[r * 2 * n + k] = d_u;
      p.d_c[e] = d_c;
      p.dh[e] = dnext * (p.origin != 0 ? u : 1 - u);
      if (p.before != nullptr) p.before[e] = h;
      if (p.dx == nullptr) return;
      p.dx[row * 3 * n + k] = d_u;
      p.dx[row * 3 * n + 2 * n + k] = d_c;
    });
  }
};

// products: d_c with the state's weight.
struct GruGatesGrad {
  PD_DEVICE static void Run(const Block& block, const GruGradArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n;
      const float reset = p.gates[r * 3 * n + n + k], d = p.products[e];
      const float d_r = d * p.h[e] * ActivationSlope(p.gate, reset);
      p.d_ur[r * 2 * n + n + k] = d_r;
      p.dh[e] += d * reset;
      if (p.dx != nullptr) p.dx[RowOf(p.rows, r) * 3 * n + n + k] = d_r;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(gru_gates, GruGates, GruArgs)
PD_KERNEL(gru_state, GruState, GruArgs)
PD_KERNEL(gru_state_grad, GruStateGrad, GruGradArgs)
PD_KERNEL(gru_gates_grad, GruGatesGrad, GruGradArgs)
