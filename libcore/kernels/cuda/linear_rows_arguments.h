// SPDX-License-Identifier: Apache-2.0
// Arguments of linear_rows.cu, nce.cu and hierarchical_sigmoid.cu. A pair is
// one of the `columns` of a sample and the row of W there.
#ifndef PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/philox.h"

namespace pd::cuda {

/// Gradients of z = w[row] . x[sample] + bias[row], where dz is z's; a pair
/// that is not there has dz 0.
struct LinearRowsArgs {
  const float *x, *w, *dz;
  const int64_t* rows;
  float *dx, *values;  ///< values: a row of W@GRAD for each pair
  int64_t samples, columns, width;
};

/// w[row] . x[sample] + start.
PD_DEVICE float LinearRow(const float* x, const float* w, int64_t width,
                          float start) {
  for (int64_t k = 0; k < width; ++k) start += x[k] * w[k];
  return start;
}

/// nce. The classes of a sample are its labels, then `given` or draws.
struct NceArgs {
  const float *x, *w, *bias, *sample_weight, *probs, *alias_probs;
  const void* label;
  const int64_t* given;
  const int32_t* alias;
  int64_t* classes;
  float *logits, *cost;
  const float* dcost;
  float* dz;
  int64_t* rows;  ///< of the gradient's pairs
  DrawArgs draws;
  int64_t samples, labels, columns, width, total, known;
  int32_t sampler, negatives, wide;
  int32_t* bad;  ///< set to 1 by a class outside [0, known)
};

/// hierarchical_sigmoid over the default tree of `classes`, or paths of at most
/// `depth` nodes in `table`.
struct HsigmoidArgs {
  const float *x, *w, *bias;
  const void *label, *table, *code;
  float *pre_out, *z, *out;
  const float* dout;
  float* dz;
  int64_t* rows;  ///< of each pair
  int64_t samples, depth, width, classes, nodes;
  int32_t label_wide, table_wide, code_wide;
  int32_t* bad;  ///< set to 1 by a label or a node that is none
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_ARGUMENTS_H_
