// SPDX-License-Identifier: Apache-2.0
// Which function cpu/activation.cc and cpu/math_functions.cc compute. A header
// of its own because those files are compiled once for each instruction set.
#ifndef PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_
#define PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_

#include <cstdint>

#include "libcore/base/half.h"

namespace pd {
namespace cpu {

enum class Function {
  kRelu,
  kRelu6,
  kLeakyRelu,
  kHardSwish,
  kSwish,
  kSigmoid,
  kTanh,
  kErf,
  // From here on, of math_functions.cc; those that wait for memory first.
  kAbs,
  kClip,
  kFloor,
  kCeil,
  kRound,
  kSoftShrink,
  kHardShrink,
  kSqrt,
  kRsqrt,
  kExp,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAtan,
  kSoftplus,
  kMish,
  kElu,
  kSelu,
  kLogSigmoid,
  kTanhShrink,
  kLogit,
};

/// A function and the attributes that it reads.
struct Activation {
  Function function = Function::kRelu;
  float threshold = 6, scale = 6, offset = 3, alpha = 0, beta = 1, lambda = 0;
  float eps = 0, low = 0, high = 0;
};

/// out = f(x), and dx = dout * f', for n elements. `v` is x or out as the
/// gradient op reads it.
template <typename T>
using UnaryValues = void (*)(const Activation& a, const T* x, int64_t n,
                             T* out);
template <typename T>
using UnaryGrads = void (*)(const Activation& a, const T* v, const T* dout,
                            int64_t n, T* dx);

/// The functions from kAbs on, for data of the argument's type.
UnaryValues<float> MathValues(float);
UnaryValues<BFloat16> MathValues(BFloat16);
UnaryGrads<float> MathGrads(float);
UnaryGrads<BFloat16> MathGrads(BFloat16);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_
