// SPDX-License-Identifier: Apache-2.0
// Functions of a float or a double by one name, for bodies of both; kernels of
// doubles are called like those of floats, and _64.
#ifndef PD_LIBCORE_KERNELS_CUDA_FLOAT64_H_
#define PD_LIBCORE_KERNELS_CUDA_FLOAT64_H_

#include <cmath>

#include "libcore/kernels/cuda/block.h"

/// The start of a function for a float or a double, T.
#define PD_REAL         \
  template <typename T> \
  PD_DEVICE

namespace pd::cuda {

#define PD_REAL_FUNCTION(Name, function)                     \
  PD_DEVICE float Name(float x) { return ::function##f(x); } \
  PD_DEVICE double Name(double x) { return ::function(x); }
PD_REAL_FUNCTION(Abs, fabs)
PD_REAL_FUNCTION(Acos, acos)
PD_REAL_FUNCTION(Acosh, acosh)
PD_REAL_FUNCTION(Asin, asin)
PD_REAL_FUNCTION(Asinh, asinh)
PD_REAL_FUNCTION(Atan, atan)
PD_REAL_FUNCTION(Atanh, atanh)
PD_REAL_FUNCTION(Ceil, ceil)
PD_REAL_FUNCTION(Cos, cos)
PD_REAL_FUNCTION(Cosh, cosh)
PD_REAL_FUNCTION(Erf, erf)
PD_REAL_FUNCTION(Exp, exp)
PD_REAL_FUNCTION(Expm1, expm1)
PD_REAL_FUNCTION(Floor, floor)
PD_REAL_FUNCTION(Log, log)
PD_REAL_FUNCTION(Log10, log10)
PD_REAL_FUNCTION(Log1p, log1p)
PD_REAL_FUNCTION(Log2, log2)
PD_REAL_FUNCTION(Round, round)
PD_REAL_FUNCTION(Sin, sin)
PD_REAL_FUNCTION(Sinh, sinh)
PD_REAL_FUNCTION(Sqrt, sqrt)
PD_REAL_FUNCTION(Tan, tan)
PD_REAL_FUNCTION(Tanh, tanh)
PD_REAL_FUNCTION(Trunc, trunc)
#undef PD_REAL_FUNCTION

PD_DEVICE float Pow(float x, float y) { return ::powf(x, y); }
PD_DEVICE double Pow(double x, double y) { return ::pow(x, y); }
PD_DEVICE float Max(float x, float y) { return ::fmaxf(x, y); }
PD_DEVICE double Max(double x, double y) { return ::fmax(x, y); }

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_FLOAT64_H_
