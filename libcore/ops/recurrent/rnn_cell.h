// SPDX-License-Identifier: Apache-2.0
// One time step of the rnn op for one sequence of the batch, element-wise. x
// are the gates' parts from the input, h those from the last state, each with
// its bias:
//   RNN_TANH, RNN_RELU: h' = act(x + h)
//   LSTM: i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x + h
//         c' = f * c + i * g, h' = o * tanh(c')
//   GRU:  r, z = sigmoid(x + h), n = tanh(x_n + r * h_n)
//         h' = (1 - z) * n + z * h
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_CELL_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_CELL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "libcore/ops/recurrent/rnn_dims.h"

namespace pd {

template <typename T>
T RnnSigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// gates: x on entry, the activated gates on return; extra: see RnnDims. h and
/// c are the state, which is updated.
template <typename T>
void RnnCell(RnnMode mode, int64_t n, const T* from_h, T* gates, T* extra, T* h,
             T* c) {
  for (int64_t k = 0; k < n; ++k) {
    if (mode == RnnMode::kLstm) {
      const T i = RnnSigmoid(gates[k] + from_h[k]);
      const T f = RnnSigmoid(gates[n + k] + from_h[n + k]);
      const T g = std::tanh(gates[2 * n + k] + from_h[2 * n + k]);
      const T o = RnnSigmoid(gates[3 * n + k] + from_h[3 * n + k]);
      gates[k] = i;
      gates[n + k] = f;
      gates[2 * n + k] = g;
      gates[3 * n + k] = o;
      extra[k] = c[k] = f * c[k] + i * g;
      h[k] = o * std::tanh(c[k]);
    } else if (mode == RnnMode::kGru) {
      const T r = RnnSigmoid(gates[k] + from_h[k]);
      const T z = RnnSigmoid(gates[n + k] + from_h[n + k]);
      const T candidate = std::tanh(gates[2 * n + k] + r * from_h[2 * n + k]);
      gates[k] = r;
      gates[n + k] = z;
      gates[2 * n + k] = candidate;
      extra[k] = from_h[2 * n + k];
      h[k] = (T(1) - z) * candidate + z * h[k];
    } else {
      const T sum = gates[k] + from_h[k];
      h[k] = gates[k] =
          mode == RnnMode::kTanh ? std::tanh(sum) : std::max(sum, T(0));
    }
  }
}

/// Inputs of a step's gradient: its gates and extra, the state before it.
template <typename T>
struct RnnCellState {
  const T *gates, *extra, *h, *c;
};

/// dh and dc: the gradients of the state after the step on entry; on return
/// dc is that of the cells before it, and dh the part of h's that does not pass
/// through the weights. dx and dgh are the gradients of the gates' two parts;
/// they are the same place unless the mode is GRU.
template <typename T>
void RnnCellGrad(RnnMode mode, int64_t n, const RnnCellState<T>& s, T* dh,
                 T* dc, T* dx, T* dgh) {
  for (int64_t k = 0; k < n; ++k) {
    if (mode == RnnMode::kLstm) {
      const T i = s.gates[k], f = s.gates[n + k];
      const T g = s.gates[2 * n + k], o = s.gates[3 * n + k];
      const T tanh_c = std::tanh(s.extra[k]);
      const T cell = dc[k] + dh[k] * o * (T(1) - tanh_c * tanh_c);
      dx[k] = cell * g * i * (T(1) - i);
      dx[n + k] = cell * s.c[k] * f * (T(1) - f);
      dx[2 * n + k] = cell * i * (T(1) - g * g);
      dx[3 * n + k] = dh[k] * tanh_c * o * (T(1) - o);
      dc[k] = cell * f;
      dh[k] = T(0);
    } else if (mode == RnnMode::kGru) {
      const T r = s.gates[k], z = s.gates[n + k], m = s.gates[2 * n + k];
      const T candidate = dh[k] * (T(1) - z) * (T(1) - m * m);
      dx[k] = dgh[k] = candidate * s.extra[k] * r * (T(1) - r);
      dx[n + k] = dgh[n + k] = dh[k] * (s.h[k] - m) * z * (T(1) - z);
      dx[2 * n + k] = candidate;
      dgh[2 * n + k] = candidate * r;
      dh[k] *= z;
    } else {
      const T h = s.gates[k];
      dx[k] = mode == RnnMode::kTanh ? dh[k] * (T(1) - h * h)
                                     : (h > T(0) ? dh[k] : T(0));
      dh[k] = T(0);
    }
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_CELL_H_
