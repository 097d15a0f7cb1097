// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in lstm.cu and gru.cu: one time step of the m
// sequences that are still running, in the order of SequenceBatches; `rows` are
// their rows in the tensors that are not in that order, null where none are.
#ifndef PD_LIBCORE_KERNELS_CUDA_LOD_RNN_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_LOD_RNN_ARGUMENTS_H_

#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// Numbered as pd::RnnActivation.
enum LodActivation : int32_t { kIdentity, kSigmoid, kTanh, kRelu };

PD_DEVICE float Activate(int32_t activation, float x) {
  if (activation == kSigmoid) return 1 / (1 + expf(-x));
  if (activation == kTanh) return tanhf(x);
  if (activation == kRelu) return x > 0 ? x : 0.0f;
  return x;
}
/// The derivative, from the activation's value.
PD_DEVICE float ActivationSlope(int32_t activation, float y) {
  if (activation == kSigmoid) return y * (1 - y);
  if (activation == kTanh) return 1 - y * y;
  if (activation == kRelu) return y > 0 ? 1.0f : 0.0f;
  return 1.0f;
}

/// The activations of lstm; n: elements of a state.
struct LstmForm {
  int64_t m, n;
  const int64_t* rows;
  const float* peepholes;  ///< or null
  int32_t gate, cell, node;
};
/// gates [m, 4 * n] and what is n wide lie in the order of the batches, x,
/// hidden and cell in that of the rows. c: the cells before.
struct LstmArgs {
  LstmForm form;
  const float *x, *bias, *from_h, *c;
  float *gates, *active, *batch_hidden, *batch_cell, *hidden, *cell;
};
struct LstmGradArgs {
  LstmForm form;
  const int64_t* rows_before;  ///< of the step before; null: it is the first
  const float *gates, *active, *hidden, *cell, *h0, *c0, *dhidden, *dlast;
  float *dc, *dgates, *before_h, *before_c, *dx;
};
/// The gradient of the peepholes, [3 * n], over all batch rows in the order of
/// `order`.
struct PeepholeGradArgs {
  const float *dgates, *before_c, *cell;
  const int64_t *rows, *order;
  float* to;
  int64_t count, n;
};

/// gates [m, 3 * n]. products: of h or of reset with a part of the weight.
struct GruArgs {
  const int64_t* rows;
  const float *x, *bias, *products, *h;
  float *gates, *reset, *batch_hidden, *hidden;
  int64_t m, n;
  int32_t gate, node, origin;
};
/// The gradient of the state after a step is dhidden, and where a step follows
/// what it has left in dh and products. before: a copy of h, or null.
struct GruGradArgs {
  const int64_t* rows;
  const float *gates, *h, *dhidden, *products;
  float *dh, *d_ur, *d_c, *before, *dx;
  int64_t m, n;
  int32_t gate, node, origin, follows;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LOD_RNN_ARGUMENTS_H_
