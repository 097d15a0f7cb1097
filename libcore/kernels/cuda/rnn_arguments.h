// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of recurrences (rnn.cu).
#ifndef PD_LIBCORE_KERNELS_CUDA_RNN_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_RNN_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// How many steps the sequences of a batch have; null: all are whole.
struct RnnLengths {
  const void* steps;
  int32_t wide;  ///< int64, else int32
};
/// Numbered as pd::RnnMode.
enum RnnKind : int32_t { kRnnTanh, kRnnRelu, kRnnLstm, kRnnGru };

/// Step t of a layer's direction, of [batch, ..] each: gates and from_h are
/// gates_width wide, out is out_width, the others n. gates holds the inputs'
/// part on entry.
struct RnnCellArgs {
  const float *from_h, *b_ih, *b_hh;
  float *gates, *extra, *h, *c, *out;
  RnnLengths lengths;
  int64_t batch, n, gates_width, out_width, t;
  int32_t mode;
};
struct RnnGradArgs {
  const float *gates, *extra;
  const float *before_h, *before_c;  ///< of the step before; null: the first's
  const float *first_h, *first_c;    ///< PreState
  const float *dy, *through;         ///< null: 0
  float *dh, *dc, *dgx, *dgh, *last_h;
  RnnLengths lengths;
  int64_t batch, n, gates_width, out_width, t, before_t;
  int32_t mode;
};
struct RnnSumArgs {
  const float* from;
  float* to;
  int64_t rows, n;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_RNN_ARGUMENTS_H_
