// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernel that follows a convolution (conv.cu).
#ifndef PD_LIBCORE_KERNELS_CUDA_CONV_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_CONV_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// out = activation(out + residual + bias of the channel), n elements of one
/// type. Element i is of channel i / inner % channels.
struct ConvTailArgs {
  void* out;
  const void *residual, *bias;  ///< null: there is none
  int64_t n, inner, channels;
  NumberType type;
  int32_t relu;
  float top;  ///< of relu's results; 0: they have none
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_CONV_ARGUMENTS_H_
