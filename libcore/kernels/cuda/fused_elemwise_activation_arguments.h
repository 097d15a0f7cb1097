// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in fused_elemwise_activation.cu (arguments.h).
#ifndef PD_LIBCORE_KERNELS_CUDA_FUSED_ELEMWISE_ACTIVATION_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_FUSED_ELEMWISE_ACTIVATION_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// out = relu(x + y), or x + y where the ReLU gave more than 0, for n elements
/// that lie alike in all arrays.
template <typename T>
struct AddReluArgsOf {
  NumbersIn<T> x, y;
  NumbersIn<T> relu;  ///< of the gradient: the ReLU's result
  NumbersOut<T> out;
  int64_t n;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_FUSED_ELEMWISE_ACTIVATION_ARGUMENTS_H_
