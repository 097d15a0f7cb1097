// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in linear_chain_crf.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_LINEAR_CHAIN_CRF_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_LINEAR_CHAIN_CRF_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/spans_arguments.h"

namespace pd::cuda {

/// linear_chain_crf over `rows` rows of `tags`; what has a row's shape is
/// [rows, tags].
struct CrfArgs {
  SpanArgs spans;
  const float *emission, *transition;
  const void* label;
  float *alpha, *exps, *transition_exps, *cost;
  float* max;  ///< of each row
  int64_t rows, tags;
  int32_t wide;      ///< labels are int64, else int32
  int32_t* bad_tag;  ///< set to 1 by a label that is no tag
};
struct CrfGradArgs {
  SpanArgs spans;
  const float *alpha, *exps, *transition_exps, *dcost;
  const void* label;
  float *beta, *de, *dw;
  float* sums;  ///< of the pairs of tags that end in each row
  int64_t rows, tags;
  int32_t wide;
  int32_t* bad_tag;
};
/// crf_decoding. scores: [sequences, 2, tags]; from: [rows, tags].
struct CrfDecodeArgs {
  SpanArgs spans;
  const float *emission, *transition;
  const void* label;  ///< or null
  float* scores;
  int32_t* from;
  int64_t* path;
  int64_t tags;
  int32_t wide;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LINEAR_CHAIN_CRF_ARGUMENTS_H_
