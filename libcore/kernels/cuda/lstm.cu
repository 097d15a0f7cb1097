// SPDX-License-Identifier: Apache-2.0
// One time step of lstm for the sequences that are running, and its gradient.
// The formulas are those of libcore/ops/recurrent/lstm_cell.h.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/lod_rnn_arguments.h"

namespace pd::cuda {
namespace {

// A thread takes an element of the state.
struct LstmStep {
  PD_DEVICE static void Run(const Block& block, const LstmArgs& p) {
    const LstmForm& s = p.form;
    const int64_t n = s.n;
    block.Spread(s.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n, row = s.rows[r];
      const float* const x = p.x + row * 4 * n + k;
      const float* const from_h = p.from_h + r * 4 * n + k;
      float* const gates = p.gates + r * 4 * n + k;
      const auto sum = [&](int64_t g) {
        return x[g * n] + p.bias[g * n + k] + from_h[g * n];
      };
      const auto peep = [&](int64_t g, float c) {
        return s.peepholes == nullptr ? 0.0f : c * s.peepholes[g * n + k];
      };
      const float before = p.c[e];
      const float a = Activate(s.node, sum(0));
      const float i = Activate(s.gate, sum(1) + peep(0, before));
      const float f = Activate(s.gate, sum(2) + peep(1, before));
      const float c = f * before + i * a;
      const float o = Activate(s.gate, sum(3) + peep(2, c));
      const float active = Activate(s.cell, c);
      gates[0] = a;
      gates[n] = i;
      gates[2 * n] = f;
      gates[3 * n] = o;
      p.active[e] = active;
      p.batch_cell[e] = c;
      p.batch_hidden[e] = p.hidden[row * n + k] = o * active;
      if (p.cell != nullptr) p.cell[row * n + k] = c;
    });
  }
};

struct LstmStepGrad {
  PD_DEVICE static void Run(const Block& block, const LstmGradArgs& p) {
    const LstmForm& s = p.form;
    const int64_t n = s.n;
    block.Spread(s.m * n, [&](int64_t e) {
      const int64_t r = e / n, k = e % n, row = s.rows[r];
      const int64_t last =
          p.rows_before == nullptr ? e : p.rows_before[r] * n + k;
      const float c = (p.rows_before == nullptr ? p.c0 : p.cell)[last];
      p.before_c[e] = c;
      p.before_h[e] = (p.rows_before == nullptr ? p.h0 : p.hidden)[last];
      const float* const gates = p.gates + r * 4 * n + k;
      const float a = gates[0], i = gates[n], f = gates[2 * n];
      const float o = gates[3 * n], active = p.active[e];
      const float dh = p.dhidden[row * n + k] + p.dlast[e];
      const float d_o = dh * active * ActivationSlope(s.gate, o);
      float cell = p.dc[e] + dh * o * ActivationSlope(s.cell, active);
      if (s.peepholes != nullptr) cell += d_o * s.peepholes[2 * n + k];
      const float d_a = cell * i * ActivationSlope(s.node, a);
      const float d_i = cell * a * ActivationSlope(s.gate, i);
      const float d_f = cell * c * ActivationSlope(s.gate, f);
      float dc = cell * f;
      if (s.peepholes != nullptr)
        dc += d_i * s.peepholes[k] + d_f * s.peepholes[n + k];
      p.dc[e] = dc;
      const auto give = [&](float* to) {
        to[0] = d_a;
        to[n] = d_i;
        to[2 * n] = d_f;
        to[3 * n] = d_o;
      };
      give(p.dgates + r * 4 * n + k);
      if (p.dx != nullptr) give(p.dx + row * 4 * n + k);
    });
  }
};

// A thread owns a peephole.
struct LstmPeepholeGrad {
  PD_DEVICE static void Run(const Block& block, const PeepholeGradArgs& p) {
    block.Spread(3 * p.n, [&](int64_t e) {
      const int64_t which = e / p.n, k = e % p.n;
      float sum = 0;
      for (int64_t i = 0; i < p.count; ++i) {
        const int64_t r = p.order[i];
        const float c =
            which == 2 ? p.cell[p.rows[r] * p.n + k] : p.before_c[r * p.n + k];
        sum += p.dgates[(r * 4 + which + 1) * p.n + k] * c;
      }
      p.to[e] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(lstm_step, LstmStep, LstmArgs)
PD_KERNEL(lstm_step_grad, LstmStepGrad, LstmGradArgs)
PD_KERNEL(lstm_peephole_grad, LstmPeepholeGrad, PeepholeGradArgs)
