// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of updates and of the scaling of losses.
#ifndef PD_LIBCORE_KERNELS_CUDA_UPDATE_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_UPDATE_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

inline constexpr int64_t kUpdateChunk = 4096;

/// A gradient in a table in device memory; its blocks are as in UpdateTensor.
struct ScaledTensor {
  const void* in;
  void* out;
  int64_t n, first_block;
  NumberType type;
  int32_t unused;
};
/// check_finite_and_unscale and update_loss_scaling.
struct ScalingArgs {
  const ScaledTensor* tensors;
  int32_t* bad;  ///< one for each tensor
  bool* found;
  const float* scale;
  float* scale_out;
  const int32_t *good, *bad_steps;
  int32_t *good_out, *bad_steps_out;
  int32_t count, grow_after, shrink_after, stops;
  float grow, shrink;
};

/// One of the tensors of an update, in a table in device memory, as there may
/// be hundreds. Blocks first_block and on take kUpdateChunk elements each.
/// Parameters, moments and powers are floats or, for some kernels, doubles.
struct UpdateTensor {
  void* param;  ///< the master of a half
  void* half;   ///< its rounded copy, or null
  const void* grad;
  void *first, *second, *third;  ///< moments, where the rule has them
  void *power1, *power2;         ///< of adam's betas
  const void* rate;
  int64_t n;
  int64_t first_block;
  double decay;
  NumberType grad_type, half_type, rate_type;
  int32_t unused;
};
struct UpdateArgs {
  const UpdateTensor* tensors;
  const bool* skip;  ///< null, or true: nothing is updated
  int32_t count, nesterov;
  double mu, beta1, beta2, epsilon, rescale, decay, l1, l2;
};

inline constexpr int kTrustParts = 256;

/// The update of one parameter by the norms of it and of its step.
struct TrustArgs {
  float *param, *first, *second, *power1, *power2;
  const float *grad, *rate;
  void* half;           ///< the rounded copy of `param`, or null
  float *step, *parts;  ///< parts: of both sums of squares, kTrustParts each
  int64_t n, blocks;    ///< blocks that wrote parts
  float mu, beta1, beta2, epsilon, rescale, decay, coeff;
  int32_t adapts;
  NumberType half_type;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_UPDATE_ARGUMENTS_H_
