// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernel of integers (elementwise_integers.cu).
#ifndef PD_LIBCORE_KERNELS_CUDA_ELEMENTWISE_INTEGERS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ELEMENTWISE_INTEGERS_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

enum class IntegerFunction : int32_t {
  kAdd,
  kSub,
  kMul,
  kMax,
  kMin,
  kMod,
  kFloorDiv,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kXor,
};

/// out = f(x + before, y) + behind over `walk`; without y, `number` is in its
/// place. Truth is 0 and 1.
struct IntegerArgs {
  const void *x, *y;
  void* out;
  int64_t n, number, before, behind;
  int32_t* bad;  ///< set to 1 by a division by zero, where f divides
  IntegerFunction function;
  NumberType type, out_type;
  Walk<2> walk;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ELEMENTWISE_INTEGERS_ARGUMENTS_H_
