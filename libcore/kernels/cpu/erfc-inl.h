// SPDX-License-Identifier: Apache-2.0
// erf and its complement in vectors, for files that Highway compiles once for
// each instruction set.
//   erfc(z) for z >= 0 is t exp(-z^2 + p(t)), t = 1 / (1 + z / 2), with
//   Chebyshev coefficients: its relative error is below 1.2e-7 everywhere
//   (Press et al., Numerical Recipes, section 6.2).
#if defined(PD_LIBCORE_KERNELS_CPU_ERFC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PD_LIBCORE_KERNELS_CPU_ERFC_INL_H_
#undef PD_LIBCORE_KERNELS_CPU_ERFC_INL_H_
#else
#define PD_LIBCORE_KERNELS_CPU_ERFC_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;

// exp(plus - z^2) with the rounding of z^2 put back: z^2 is large where it
// matters.
HWY_INLINE Floats ExpOfMinusSquare(Floats z, Floats plus) {
  const Floats square = hn::Mul(z, z);
  const Floats rest = hn::MulSub(z, z, square);
  return hn::Exp(FloatTag(), hn::Sub(hn::Sub(plus, square), rest));
}

// erfc(z), 0 <= z <= 20.
HWY_INLINE Floats ErfcOf(Floats z) {
  const FloatTag d;
  const Floats one = hn::Set(d, 1.0f);
  const Floats t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.5f), one));
  Floats p = hn::Set(d, 0.17087277f);
  for (const float c :
       {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
        0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f})
    p = hn::MulAdd(p, t, hn::Set(d, c));
  return hn::Mul(t, ExpOfMinusSquare(z, p));
}

// erf(x): below 1 its Taylor series, 2 / sqrt(pi) sum (-1)^n x^(2n+1) /
// (n! (2n+1)), of which the term for n = 10 is 1e-8; else 1 - erfc.
HWY_INLINE Floats ErfOf(Floats x) {
  const FloatTag d;
  const Floats one = hn::Set(d, 1.0f);
  const Floats z = hn::Min(hn::Abs(x), hn::Set(d, 20.0f));
  const Floats square = hn::Mul(z, z);
  Floats series = hn::Set(d, 1.4807193e-8f);
  for (const float c :
       {-1.6365844e-7f, 1.6462114e-6f, -1.4925650e-5f, 1.2055333e-4f,
        -8.5483270e-4f, 5.2239776e-3f, -2.6866171e-2f, 1.1283792e-1f,
        -3.7612639e-1f, 1.1283792f})
    series = hn::MulAdd(series, square, hn::Set(d, c));
  const Floats near = hn::Mul(series, z);
  const Floats y =
      hn::IfThenElse(hn::Lt(z, one), near, hn::Sub(one, ErfcOf(z)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#endif  // PD_LIBCORE_KERNELS_CPU_ERFC_INL_H_
