// SPDX-License-Identifier: Apache-2.0
// One time step of recurrent layers for a whole batch, and its gradient. The
// formulas are those of libcore/ops/recurrent/rnn_cell.h.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/rnn_arguments.h"

namespace pd::cuda {
namespace {

PD_DEVICE float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

PD_DEVICE bool IsValid(const RnnLengths& lengths, int64_t sequence, int64_t t) {
  if (lengths.steps == nullptr) return true;
  return t < (lengths.wide != 0
                  ? static_cast<const int64_t*>(lengths.steps)[sequence]
                  : static_cast<const int32_t*>(lengths.steps)[sequence]);
}

// A thread takes an element of the state.
struct RnnCell {
  PD_DEVICE static void Run(const Block& block, const RnnCellArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.batch * n, [&](int64_t i) {
      const int64_t b = i / n, k = i % n;
      float* const out = p.out + b * p.out_width + k;
      if (!IsValid(p.lengths, b, p.t)) {
        *out = 0;
        return;
      }
      float* const gates = p.gates + b * p.gates_width + k;
      const float* const from_h = p.from_h + b * p.gates_width + k;
      const auto x = [&](int64_t g) {
        return gates[g * n] + p.b_ih[g * n + k];
      };
      const auto h = [&](int64_t g) {
        return from_h[g * n] + p.b_hh[g * n + k];
      };
      float state;
      if (p.mode == kRnnLstm) {
        const float in = Sigmoid(x(0) + h(0)), forget = Sigmoid(x(1) + h(1));
        const float g = tanhf(x(2) + h(2)), o = Sigmoid(x(3) + h(3));
        gates[0] = in;
        gates[n] = forget;
        gates[2 * n] = g;
        gates[3 * n] = o;
        const float c = forget * p.c[i] + in * g;
        p.extra[i] = p.c[i] = c;
        state = o * tanhf(c);
      } else if (p.mode == kRnnGru) {
        const float r = Sigmoid(x(0) + h(0)), z = Sigmoid(x(1) + h(1));
        const float candidate = tanhf(x(2) + r * h(2));
        gates[0] = r;
        gates[n] = z;
        gates[2 * n] = candidate;
        p.extra[i] = h(2);
        state = (1 - z) * candidate + z * p.h[i];
      } else {
        const float sum = x(0) + h(0);
        state = p.mode == kRnnTanh ? tanhf(sum) : (sum > 0 ? sum : 0.0f);
        gates[0] = state;
      }
      p.h[i] = *out = state;
    });
  }
};

struct RnnCellGrad {
  PD_DEVICE static void Run(const Block& block, const RnnGradArgs& p) {
    const int64_t n = p.n;
    block.Spread(p.batch * n, [&](int64_t i) {
      const int64_t b = i / n, k = i % n;
      const int64_t row = b * p.gates_width + k;
      float* const dgx = p.dgx + row;
      float* const dgh = p.dgh + row;
      const bool begun =
          p.before_h != nullptr && IsValid(p.lengths, b, p.before_t);
      p.last_h[i] = begun ? p.before_h[b * p.out_width + k] : p.first_h[i];
      float dh = p.dh[i] + (p.through != nullptr ? p.through[i] : 0.0f);
      if (!IsValid(p.lengths, b, p.t)) {
        for (int64_t g = 0; g < p.gates_width; g += n) dgx[g] = dgh[g] = 0;
        p.dh[i] = dh;
        return;
      }
      if (p.dy != nullptr) dh += p.dy[b * p.out_width + k];
      const float* const gates = p.gates + row;
      if (p.mode == kRnnLstm) {
        const float in = gates[0], forget = gates[n];
        const float g = gates[2 * n], o = gates[3 * n];
        const float tanh_c = tanhf(p.extra[i]);
        const float cell = p.dc[i] + dh * o * (1 - tanh_c * tanh_c);
        const float before = begun ? p.before_c[i] : p.first_c[i];
        dgx[0] = cell * g * in * (1 - in);
        dgx[n] = cell * before * forget * (1 - forget);
        dgx[2 * n] = cell * in * (1 - g * g);
        dgx[3 * n] = dh * tanh_c * o * (1 - o);
        p.dc[i] = cell * forget;
        p.dh[i] = 0;
      } else if (p.mode == kRnnGru) {
        const float r = gates[0], z = gates[n], m = gates[2 * n];
        const float candidate = dh * (1 - z) * (1 - m * m);
        dgx[0] = dgh[0] = candidate * p.extra[i] * r * (1 - r);
        dgx[n] = dgh[n] = dh * (p.last_h[i] - m) * z * (1 - z);
        dgx[2 * n] = candidate;
        dgh[2 * n] = candidate * r;
        p.dh[i] = dh * z;
      } else {
        const float h = gates[0];
        dgx[0] = p.mode == kRnnTanh ? dh * (1 - h * h) : (h > 0 ? dh : 0.0f);
        p.dh[i] = 0;
      }
    });
  }
};

// A thread owns a column of the gates' gradients.
struct RnnBiasGrad {
  PD_DEVICE static void Run(const Block& block, const RnnSumArgs& p) {
    block.Spread(p.n, [&](int64_t k) {
      float sum = 0;
      for (int64_t row = 0; row < p.rows; ++row) sum += p.from[row * p.n + k];
      p.to[k] = sum;
    });
  }
};

struct RnnAdd {
  PD_DEVICE static void Run(const Block& block, const RnnSumArgs& p) {
    block.Spread(p.n, [&](int64_t i) { p.to[i] += p.from[i]; });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(rnn_cell, RnnCell, RnnCellArgs)
PD_KERNEL(rnn_cell_grad, RnnCellGrad, RnnGradArgs)
PD_KERNEL(rnn_bias_grad, RnnBiasGrad, RnnSumArgs)
PD_KERNEL(rnn_add, RnnAdd, RnnSumArgs)
