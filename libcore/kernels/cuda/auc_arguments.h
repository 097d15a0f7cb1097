// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in auc.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_AUC_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_AUC_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// auc, whose counts lie as in pd::AucLayout: positive, then negative ones.
struct AucArgs {
  const float *predict, *weight;  ///< weight: null, or one number
  const void* labels;
  const int64_t* in[2];
  int64_t* out[2];       ///< may be `in`
  double *area, *parts;  ///< parts: one for each thread of a block
  int64_t rows, width, buckets, slide;
  int32_t labels64;  ///< else int32
  int32_t* bad;      ///< set to 1 by a probability outside [0, 1]
  int32_t* ended;    ///< set to 1 by a number of batches below 0
};

/// average_accumulates: sums 1 to 3; num_accumulates, old_num_accumulates,
/// num_updates.
struct AverageArgs {
  const float *param, *in[3];
  float* out[3];
  const int64_t* counts_in[3];
  int64_t* counts_out[3];
  int64_t n, most, least;
  float window;
  int32_t in_place;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_AUC_ARGUMENTS_H_
