// SPDX-License-Identifier: Apache-2.0
// Arguments of bilinear_tensor_product.cu, cumsum.cu, dropout.cu,
// layer_norm.cu, lookup_table_v2.cu, prelu.cu, sequence.cu, spectral_norm.cu
// and unfold.cu, and of some kernels of loss.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_LAYER_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_LAYER_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// prelu of x as [outer, n, inner], whose slopes are alpha's n elements.
struct PreluArgs {
  FloatsIn x, alpha, dout;
  FloatsOut out, dalpha;  ///< of the gradient: out is dx
  int64_t outer, n, inner;
};

/// Sums along lines of n elements `inner` apart. `parts`: where a block has a
/// line, a number for each thread of each block.
template <typename T>
struct CumsumArgsOf {
  const T* x;
  T *out, *parts;
  int64_t lines, n, inner;
  int32_t exclusive, reverse;
};

/// sigmoid_cross_entropy_with_logits by weights; with dout, its gradient.
struct WeightedArgs {
  FloatsIn x, y, weight, dout;
  FloatsOut out;
  float* divisor;
  int64_t n;
  float ignore;
};

/// nll_loss of lines of n classes `inner` apart. `each`: a loss for each line;
/// `mean`: their sum is divided by that of their weights, *total.
struct NllArgs {
  const float *x, *weight, *dout;
  const void* label;
  float *out, *total;
  int64_t lines, n, inner, ignore;
  int32_t label64;  ///< else int32
  int32_t each, mean;
  int32_t* bad;  ///< set to 1 by a label that is out of range
};

/// out = x * factor where the mask's element is 1, else 0; a mask of fewer
/// dimensions serves along the others.
struct MaskArgs {
  FloatsIn x;
  const uint8_t* mask;
  FloatsOut out;
  int64_t n;
  float factor;
  Walk<1> walk;
};

/// Runs of `groups` elements, `inner` apart; n of them.
struct MaxoutArgs {
  FloatsIn x, out, dout;
  FloatsOut to;  ///< out, or dx
  int64_t n, inner, groups;
};

/// Where the windows of one axis begin, and their taps.
struct UnfoldAxis {
  int64_t extent, kernel, stride, dilation, before, windows;
};
/// Planes, and their windows as columns [kernel, windows].
struct WindowArgs {
  const float* from;
  float* to;
  int64_t planes;
  UnfoldAxis down, across;
};

/// bilinear_tensor_product of n rows: x [n, a]; `part` [n, k, a] is Weight y.
struct BilinearArgs {
  const float *x, *part, *bias, *dout;
  float* to;
  int64_t n, a, k;
};

/// spectral_norm: a weight seen as in pd::SpectralMatrix, and what its steps
/// leave: u, v, W v and the sums of W's rows, then sigma and the sum of W.
struct SpectralArgs {
  const float *weight, *first_u, *first_v, *dout;
  float* to;  ///< Out or Weight@GRAD
  double *u, *v, *products, *sums, *results;
  int64_t h, w, inner;
  double eps;
};

/// Numbered as pd::SequencePool.
enum SequencePoolKind : int32_t {
  kSequenceSum,
  kSequenceAverage,
  kSequenceSqrt,
  kSequenceMax,
  kSequenceFirst,
  kSequenceLast,
};
/// Sequence i is rows [offsets[i], offsets[i + 1]) of `width` elements.
struct SequenceArgs {
  const float* from;  ///< x, or Out's gradient
  float* to;          ///< out, or dx, which is 0
  int32_t* index;     ///< of maxima, and what the gradient reads; or null
  const int64_t* offsets;
  int64_t count, width;
  float pad;
  int32_t kind;
};

/// Softmax over sequences of single elements: to of x, or of y and dy.
struct SequenceSoftmaxArgs {
  const float *x, *y, *dy;
  float* to;
  const int64_t* offsets;
  int64_t count;
};

/// to[i, j] = 1 for j < lengths[i], else 0; n rows of `width`.
struct SequenceMaskArgs {
  const void* lengths;
  float* to;
  int64_t n, width;
  int32_t wide;  ///< lengths are int64, else int32
};

/// sequence_scatter: ids [offsets[i], offsets[i + 1]) are columns of row i of
/// `rows` rows of `width`, of which `count` have ids. The gradient is of
/// updates.
struct SequenceScatterArgs {
  const float *x, *updates, *dout;
  float *out, *dupdates;
  const int64_t* offsets;
  const void* ids;
  int64_t rows, count, width;
  int32_t wide;  ///< ids are int64, else int32
  int32_t* bad;  ///< set to 1 by an id outside [0, width)
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LAYER_ARGUMENTS_H_
