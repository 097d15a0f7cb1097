// SPDX-License-Identifier: Apache-2.0
// One step of the LSTM of lstm and fusion_lstm, element-wise, for one sequence.
// The gates' parts come in the order candidate, input, forget, output:
//   a = node(x_a), i = gate(x_i + c * W_ic), f = gate(x_f + c * W_fc)
//   c' = f * c + i * a, o = gate(x_o + c' * W_oc), h' = o * cell(c')
// where x holds the bias and the product with the last state, and W_ic, W_fc,
// W_oc are the peepholes, which may be absent.
#ifndef PD_LIBCORE_OPS_RECURRENT_LSTM_CELL_H_
#define PD_LIBCORE_OPS_RECURRENT_LSTM_CELL_H_

#include <cstdint>

#include "libcore/ops/recurrent/rnn_activation.h"

namespace pd {

struct LstmCell {
  int64_t hidden = 0;
  RnnActivation gate = RnnActivation::kSigmoid;
  RnnActivation cell = RnnActivation::kTanh;
  RnnActivation node = RnnActivation::kTanh;
};

/// gates [4 * hidden]: x on entry, a, i, f, o on return; c: the cells before;
/// active: cell(c'). `peepholes` [3 * hidden] may be null.
template <typename T>
void LstmStep(const LstmCell& s, const T* peepholes, const T* c, T* gates,
              T* next_c, T* active, T* next_h) {
  const int64_t n = s.hidden;
  for (int64_t k = 0; k < n; ++k) {
    T from_c_i = T(0), from_c_f = T(0);
    if (peepholes != nullptr) {
      from_c_i = c[k] * peepholes[k];
      from_c_f = c[k] * peepholes[n + k];
    }
    const T a = gates[k] = Activate(s.node, gates[k]);
    const T i = gates[n + k] = Activate(s.gate, gates[n + k] + from_c_i);
    const T f = gates[2 * n + k] =
        Activate(s.gate, gates[2 * n + k] + from_c_f);
    next_c[k] = f * c[k] + i * a;
    const T from_c_o =
        peepholes != nullptr ? next_c[k] * peepholes[2 * n + k] : T(0);
    const T o = gates[3 * n + k] =
        Activate(s.gate, gates[3 * n + k] + from_c_o);
    active[k] = Activate(s.cell, next_c[k]);
    next_h[k] = o * active[k];
  }
}

/// Inputs and results of a forward step.
template <typename T>
struct LstmValues {
  const T *c, *gates, *next_c, *active;
};

/// c: the gradient of c' on entry, of c on return; gates: of x; peepholes
/// (null: none) is added to.
template <typename T>
struct LstmGradients {
  T *c, *gates, *peepholes;
};

template <typename T>
void LstmStepGrad(const LstmCell& s, const T* peepholes,
                  const LstmValues<T>& values, const T* dh,
                  const LstmGradients<T>& to) {
  const int64_t n = s.hidden;
  const auto [c, gates, next_c, active] = values;
  const auto [dc, dgates, dpeepholes] = to;
  for (int64_t k = 0; k < n; ++k) {
    const T a = gates[k], i = gates[n + k];
    const T f = gates[2 * n + k], o = gates[3 * n + k];
    const T d_o = dh[k] * active[k] * ActivationSlope(s.gate, o);
    T cell = dc[k] + dh[k] * o * ActivationSlope(s.cell, active[k]);
    if (peepholes != nullptr) cell += d_o * peepholes[2 * n + k];
    const T d_i = cell * a * ActivationSlope(s.gate, i);
    const T d_f = cell * c[k] * ActivationSlope(s.gate, f);
    dgates[k] = cell * i * ActivationSlope(s.node, a);
    dgates[n + k] = d_i;
    dgates[2 * n + k] = d_f;
    dgates[3 * n + k] = d_o;
    dc[k] = cell * f;
    if (peepholes != nullptr)
      dc[k] += d_i * peepholes[k] + d_f * peepholes[n + k];
    if (dpeepholes != nullptr) {
      dpeepholes[k] += d_i * c[k];
      dpeepholes[n + k] += d_f * c[k];
      dpeepholes[2 * n + k] += d_o * next_c[k];
    }
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_LSTM_CELL_H_
