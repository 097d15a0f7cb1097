// SPDX-License-Identifier: Apache-2.0
// One step of the GRU of gru, fusion_gru and gru_unit, for m sequences.
//   u, r = gate(x + h * W_gate), c = node(x_c + (r * h) * W_state)
//   h' = (1 - u) * h + u * c, or with origin_mode u * h + (1 - u) * c
// Weight is [hidden, 3 * hidden] by its shape; its bytes are W_gate [hidden,
// 2 * hidden] and then W_state [hidden, hidden].
#ifndef PD_LIBCORE_OPS_RECURRENT_GRU_CELL_H_
#define PD_LIBCORE_OPS_RECURRENT_GRU_CELL_H_

#include <cstdint>

#include "libcore/ops/common/gemm.h"
#include "libcore/ops/recurrent/rnn_activation.h"

namespace pd {

struct GruCell {
  int64_t hidden = 0;
  RnnActivation gate = RnnActivation::kSigmoid, node = RnnActivation::kTanh;
  bool origin = false;

  int64_t state_weight() const { return 2 * hidden * hidden; }
};

inline const GemmBatch& OneGemm() {
  static const GemmBatch batch = {{{0, 0}}};
  return batch;
}

/// gates [m, 3 * hidden]: x with its bias on entry, u, r and c on return;
/// reset: r * h. `scratch` has 2 * m * hidden elements.
template <typename T>
void GruStep(const GruCell& cell, int64_t m, const T* weight, const T* h,
             T* gates, T* reset, T* next, T* scratch) {
  const int64_t n = cell.hidden;
  Gemm<T>({m, 2 * n, n}, OneGemm(), T(1), h, weight, scratch);
  for (int64_t b = 0; b < m; ++b) {
    T* g = gates + b * 3 * n;
    for (int64_t k = 0; k < 2 * n; ++k)
      g[k] = Activate(cell.gate, g[k] + scratch[b * 2 * n + k]);
    for (int64_t k = 0; k < n; ++k) reset[b * n + k] = g[n + k] * h[b * n + k];
  }
  Gemm<T>({m, n, n}, OneGemm(), T(1), reset, weight + cell.state_weight(),
          scratch);
  for (int64_t b = 0; b < m; ++b) {
    T* g = gates + b * 3 * n;
    for (int64_t k = 0; k < n; ++k) {
      const T u = g[k], last = h[b * n + k];
      const T c = g[2 * n + k] =
          Activate(cell.node, g[2 * n + k] + scratch[b * n + k]);
      next[b * n + k] =
          cell.origin ? u * last + (T(1) - u) * c : (T(1) - u) * last + u * c;
    }
  }
}

/// Results of a backward step: the gradients of the two groups of gates before
/// their activation (ur [m, 2 * hidden], c [m, hidden]) and of h; and m *
/// hidden elements to work in.
template <typename T>
struct GruGradients {
  T *ur, *c, *h, *scratch;
};

template <typename T>
void GruStepGrad(const GruCell& cell, int64_t m, const T* weight, const T* h,
                 const T* gates, const T* dnext, const GruGradients<T>& to) {
  const int64_t n = cell.hidden;
  const auto [d_ur, d_c, dh, scratch] = to;
  for (int64_t b = 0; b < m; ++b) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = b * n + k;
      const T u = gates[b * 3 * n + k], c = gates[b * 3 * n + 2 * n + k];
      const T sign = cell.origin ? T(-1) : T(1);
      d_ur[b * 2 * n + k] =
          sign * dnext[i] * (c - h[i]) * ActivationSlope(cell.gate, u);
      d_c[i] = dnext[i] * (cell.origin ? T(1) - u : u) *
               ActivationSlope(cell.node, c);
      dh[i] = dnext[i] * (cell.origin ? u : T(1) - u);
    }
  }
  Gemm<T>({m, n, n, false, true}, OneGemm(), T(1), d_c,
          weight + cell.state_weight(), scratch);
  for (int64_t b = 0; b < m; ++b) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = b * n + k;
      const T r = gates[b * 3 * n + n + k];
      d_ur[b * 2 * n + n + k] =
          scratch[i] * h[i] * ActivationSlope(cell.gate, r);
      dh[i] += scratch[i] * r;
    }
  }
  Gemm<T>({m, n, 2 * n, false, true}, OneGemm(), T(1), d_ur, weight, scratch);
  for (int64_t i = 0; i < m * n; ++i) dh[i] += scratch[i];
}

/// Weight@GRAD of all steps: h [rows, hidden] are the states before each.
template <typename T>
void GruWeightGrad(const GruCell& cell, int64_t rows, const T* h,
                   const T* reset, const T* d_ur, const T* d_c, T* dweight) {
  const int64_t n = cell.hidden;
  Gemm<T>({n, 2 * n, rows, true, false}, OneGemm(), T(1), h, d_ur, dweight);
  Gemm<T>({n, n, rows, true, false}, OneGemm(), T(1), reset, d_c,
          dweight + cell.state_weight());
}

/// Puts the groups of gates side by side: [rows, 3 * hidden].
template <typename T>
void JoinGates(const GruCell& cell, int64_t rows, const T* d_ur, const T* d_c,
               T* joined) {
  const int64_t n = cell.hidden;
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(d_ur + r * 2 * n, 2 * n, joined + r * 3 * n);
    std::copy_n(d_c + r * n, n, joined + r * 3 * n + 2 * n);
  }
}

/// rows += bias.
template <typename T>
void AddRowBias(int64_t rows, int64_t width, const T* bias, T* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < width; ++k) to[r * width + k] += bias[k];
}

/// The sum over the rows.
template <typename T>
void ColumnSums(int64_t rows, int64_t width, const T* from, T* sums) {
  std::fill_n(sums, width, T(0));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < width; ++k) sums[k] += from[r * width + k];
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_GRU_CELL_H_
