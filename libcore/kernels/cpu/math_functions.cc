// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, roots, angles, roundings, and the activations made
// of them, for cpu/activation.cc. Highway's functions hold within ranges; what
// lies outside is put right here, so that infinities, NaN and large angles come
// out as the reference has them. Formulas: libcore/ops/activation.
#include <cmath>
#include <limits>
#include <type_traits>

#include "libcore/base/half.h"
#include "libcore/kernels/cpu/activation.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/math_functions.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/unary_loops.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A logarithm of 0, infinity and negative numbers.
HWY_INLINE V AtEndsOfLog(V x, V y) {
  y = hn::IfThenElse(hn::Eq(x, Zero()), Const(-kInfinite), y);
  y = hn::IfThenElse(hn::Eq(x, Const(kInfinite)), x, y);
  y = hn::IfThenElse(hn::Lt(x, Zero()), hn::NaN(kTag), y);
  return KeepNan(x, y);
}
HWY_INLINE V LogOf(V x) { return AtEndsOfLog(x, hn::Log(kTag, x)); }
// log(u) of u = 1 + x as rounded, put right by the ratio of x to u - 1.
HWY_INLINE V Log1pOf(V x) {
  const V u = hn::Add(x, One());
  const V y = hn::Mul(LogOf(u), hn::Div(x, hn::Sub(u, One())));
  const V near = hn::IfThenElse(hn::Eq(u, One()), x, y);
  return hn::IfThenElse(hn::Eq(u, Const(kInfinite)), u, near);
}
HWY_INLINE V TanhOf(V x) {
  const V near = hn::Max(hn::Min(x, Const(20.0f)), Const(-20.0f));
  return KeepNan(x, hn::Tanh(kTag, near));
}

// Angles that Highway does not reduce, NaN among them, go one by one.
template <class Vectors>
HWY_INLINE V OfAngle(V x, const Vectors& vectors, float (*one)(float)) {
  if (HWY_LIKELY(hn::AllTrue(kTag, hn::Le(hn::Abs(x), Const(39000.0f)))))
    return vectors(x);
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, kTag, lanes);
  for (size_t i = 0; i < hn::Lanes(kTag); ++i) lanes[i] = one(lanes[i]);
  return hn::Load(kTag, lanes);
}
inline float SinOfOne(float x) { return std::sin(x); }
inline float CosOfOne(float x) { return std::cos(x); }
inline float TanOfOne(float x) { return std::tan(x); }
HWY_INLINE V SinOf(V x) {
  return OfAngle(
      x, [](V y) HWY_ATTR { return KeepZero(y, hn::Sin(kTag, y)); }, SinOfOne);
}
HWY_INLINE V CosOf(V x) {
  return OfAngle(
      x, [](V y) HWY_ATTR { return hn::Cos(kTag, y); }, CosOfOne);
}
HWY_INLINE V TanOf(V x) {
  return OfAngle(
      x,
      [](V y) HWY_ATTR {
        return KeepZero(y, hn::Div(hn::Sin(kTag, y), hn::Cos(kTag, y)));
      },
      TanOfOne);
}

struct WithoutAttributes {
  explicit WithoutAttributes(const Activation&) {}
};

struct ExpFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return ExpOf(x); }
  V Slope(V y) const { return y; }
};
struct Expm1Function : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return Expm1Of(x); }
  V Slope(V y) const { return hn::Add(y, One()); }
};
struct LogFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return LogOf(x); }
  V Slope(V x) const { return hn::Div(One(), x); }
};
struct Log2Function : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  // Powers of two have whole logarithms, as the reference's are.
  V Value(V x) const {
    const V y = AtEndsOfLog(x, hn::Log2(kTag, x));
    const hn::RebindToUnsigned<decltype(kTag)> bits;
    const auto fraction =
        hn::And(hn::BitCast(bits, x), hn::Set(bits, 0x7fffff));
    const auto is_power =
        hn::RebindMask(kTag, hn::Eq(fraction, hn::Zero(bits)));
    return hn::IfThenElse(is_power, hn::Round(y), y);
  }
  V Slope(V x) const { return hn::Div(One(), hn::Mul(x, Const(0.69314718f))); }
};
struct Log10Function : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return AtEndsOfLog(x, hn::Log10(kTag, x)); }
  V Slope(V x) const { return hn::Div(One(), hn::Mul(x, Const(2.3025851f))); }
};
struct Log1pFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return Log1pOf(x); }
  V Slope(V x) const { return hn::Div(One(), hn::Add(One(), x)); }
};
struct SqrtFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return hn::Sqrt(x); }
  V Slope(V y) const { return hn::Div(Const(0.5f), y); }
};
struct RsqrtFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return hn::Div(One(), hn::Sqrt(x)); }
  V Slope(V y) const {
    return hn::Mul(hn::Mul(hn::Mul(Const(-0.5f), y), y), y);
  }
};
struct SinFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return SinOf(x); }
  V Slope(V x) const { return CosOf(x); }
};
struct CosFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return CosOf(x); }
  V Slope(V x) const { return hn::Neg(SinOf(x)); }
};
struct TanFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return TanOf(x); }
  V Slope(V x) const {
    const V y = TanOf(x);
    return hn::MulAdd(y, y, One());
  }
};
struct AtanFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return KeepNan(x, hn::Atan(kTag, x)); }
  V Slope(V x) const { return hn::Div(One(), hn::MulAdd(x, x, One())); }
};
struct AbsFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return hn::Abs(x); }
  V Slope(V x) const {
    const V below = hn::IfThenElseZero(hn::Lt(x, Zero()), Const(-1.0f));
    return hn::IfThenElse(hn::Gt(x, Zero()), One(), below);
  }
};
template <>
constexpr bool kZeroWins<AbsFunction> = true;

// Roundings have the gradient 0, which is the reference's.
struct Rounding : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Slope(V) const { return Zero(); }
};
struct FloorFunction : Rounding {
  using Rounding::Rounding;
  V Value(V x) const { return hn::Floor(x); }
};
struct CeilFunction : Rounding {
  using Rounding::Rounding;
  V Value(V x) const { return hn::Ceil(x); }
};
// Halves away from 0, by the number just below a half.
struct RoundFunction : Rounding {
  using Rounding::Rounding;
  V Value(V x) const {
    const V up = hn::Add(hn::Abs(x), Const(0.49999997f));
    return KeepNan(x, hn::CopySign(hn::Trunc(up), x));
  }
};

struct SoftplusFunction {
  explicit SoftplusFunction(const Activation& a)
      : beta(Const(a.beta)), threshold(Const(a.threshold)) {}
  V Value(V x) const {
    const V y = hn::Mul(beta, x);
    return hn::IfThenElse(hn::Gt(y, threshold), x,
                          hn::Div(SoftplusOf(y), beta));
  }
  V Slope(V x) const {
    const V y = hn::Mul(beta, x);
    return hn::IfThenElse(hn::Gt(y, threshold), One(), SigmoidOf(y));
  }
  V beta, threshold;
};
// tanh(log(1 + e^x)) = q / (q + 2), q = e^x (e^x + 2), above 0 with both
// divided by e^2x.
struct MishFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Factor(V x) const {
    const V e = ExpOf(hn::Neg(hn::Abs(x)));
    const V two = Const(2.0f);
    const V low = hn::Mul(e, hn::Add(e, two));
    const V high = hn::MulAdd(two, e, One());
    const auto positive = hn::Gt(x, Zero());
    const V top = hn::IfThenElse(positive, high, low);
    const V more = hn::IfThenElse(positive, hn::Mul(two, hn::Mul(e, e)), two);
    return KeepNan(x, hn::Div(top, hn::Add(top, more)));
  }
  V Value(V x) const { return hn::Mul(x, Factor(x)); }
  V Slope(V x) const {
    const V t = Factor(x);
    const V bend = hn::Mul(hn::NegMulAdd(t, t, One()), SigmoidOf(x));
    return hn::MulAdd(x, bend, t);
  }
};
struct EluFunction {
  explicit EluFunction(const Activation& a) : alpha(Const(a.alpha)) {}
  V Value(V x) const {
    return hn::IfThenElse(hn::Gt(x, Zero()), x, hn::Mul(alpha, Expm1Of(x)));
  }
  V Slope(V x) const {
    return hn::IfThenElse(hn::Gt(x, Zero()), One(), hn::Mul(alpha, ExpOf(x)));
  }
  V alpha;
};
struct SeluFunction {
  explicit SeluFunction(const Activation& a)
      : scale(Const(a.scale)), alpha(Const(a.alpha)) {}
  V Value(V x) const {
    return hn::Mul(scale, hn::IfThenElse(hn::Gt(x, Zero()), x,
                                         hn::Mul(alpha, Expm1Of(x))));
  }
  V Slope(V y) const {
    return hn::IfThenElse(hn::Gt(y, Zero()), scale,
                          hn::MulAdd(scale, alpha, y));
  }
  V scale, alpha;
};
HWY_INLINE V OutsideOf(V x, V by) {
  return hn::IfThenElseZero(hn::Gt(hn::Abs(x), by), One());
}
struct SoftShrinkFunction {
  explicit SoftShrinkFunction(const Activation& a) : by(Const(a.lambda)) {}
  V Value(V x) const {
    const V below = hn::IfThenElseZero(hn::Lt(x, hn::Neg(by)), hn::Add(x, by));
    return KeepNan(x, hn::IfThenElse(hn::Gt(x, by), hn::Sub(x, by), below));
  }
  V Slope(V x) const { return OutsideOf(x, by); }
  V by;
};
struct HardShrinkFunction {
  explicit HardShrinkFunction(const Activation& a) : by(Const(a.threshold)) {}
  V Value(V x) const { return hn::IfThenZeroElse(hn::Le(hn::Abs(x), by), x); }
  V Slope(V x) const { return OutsideOf(x, by); }
  V by;
};
struct LogSigmoidFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return hn::Neg(SoftplusOf(hn::Neg(x))); }
  V Slope(V x) const { return SigmoidOf(hn::Neg(x)); }
};
struct TanhShrinkFunction : WithoutAttributes {
  using WithoutAttributes::WithoutAttributes;
  V Value(V x) const { return hn::Sub(x, TanhOf(x)); }
  V Slope(V x) const {
    const V y = TanhOf(x);
    return hn::Mul(y, y);
  }
};
struct LogitFunction {
  explicit LogitFunction(const Activation& a)
      : low(Const(a.eps)), high(Const(1.0f - a.eps)) {}
  V Value(V x) const {
    const V y = hn::IfThenElse(hn::Lt(x, low), low,
                               hn::IfThenElse(hn::Gt(x, high), high, x));
    return LogOf(hn::Div(y, hn::Sub(One(), y)));
  }
  V Slope(V x) const {
    const auto outside = hn::Or(hn::Lt(x, low), hn::Gt(x, high));
    return hn::IfThenZeroElse(outside,
                              hn::Div(One(), hn::Mul(x, hn::Sub(One(), x))));
  }
  V low, high;
};
struct ClipFunction {
  explicit ClipFunction(const Activation& a)
      : low(Const(a.low)), high(Const(a.high)) {}
  V Value(V x) const {
    const V y = hn::IfThenElse(hn::Lt(x, low), low, x);
    return hn::IfThenElse(hn::Gt(y, high), high, y);
  }
  V Slope(V x) const {
    return hn::IfThenElseZero(hn::And(hn::Gt(x, low), hn::Lt(x, high)), One());
  }
  V low, high;
};
template <>
constexpr bool kZeroWins<ClipFunction> = true;

template <class F>
struct Tag {
  using type = F;
};

// Calls run with the function's type.
template <class Run>
void ForMathFunction(Function function, const Run& run) {
#define PD_CASE(Name)     \
  case Function::k##Name: \
    return run(Tag<Name##Function>())
  switch (function) {
    PD_CASE(Exp);
    PD_CASE(Expm1);
    PD_CASE(Log);
    PD_CASE(Log2);
    PD_CASE(Log10);
    PD_CASE(Log1p);
    PD_CASE(Sqrt);
    PD_CASE(Rsqrt);
    PD_CASE(Sin);
    PD_CASE(Cos);
    PD_CASE(Tan);
    PD_CASE(Atan);
    PD_CASE(Abs);
    PD_CASE(Floor);
    PD_CASE(Ceil);
    PD_CASE(Round);
    PD_CASE(Softplus);
    PD_CASE(Mish);
    PD_CASE(Elu);
    PD_CASE(Selu);
    PD_CASE(SoftShrink);
    PD_CASE(HardShrink);
    PD_CASE(LogSigmoid);
    PD_CASE(TanhShrink);
    PD_CASE(Logit);
    PD_CASE(Clip);
    default:
      return;  // activation.cc has the others
  }
#undef PD_CASE
}

// Functions called from outside, by the type of the data.
#define PD_MATH(T, Name)                                                      \
  void MathValues##Name(const Activation& a, const T* x, int64_t n, T* out) { \
    ForMathFunction(a.function, [&](auto tag) {                               \
      ValuesOf<typename decltype(tag)::type>(a, x, n, out);                   \
    });                                                                       \
  }                                                                           \
  void MathGrads##Name(const Activation& a, const T* v, const T* dout,        \
                       int64_t n, T* dx) {                                    \
    ForMathFunction(a.function, [&](auto tag) {                               \
      GradsOf<typename decltype(tag)::type>(a, v, dout, n, dx);               \
    });                                                                       \
  }
PD_MATH(float, Floats)
PD_MATH(BFloat16, Brains)
#undef PD_MATH

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(MathValuesFloats);
HWY_EXPORT(MathGradsFloats);
HWY_EXPORT(MathValuesBrains);
HWY_EXPORT(MathGradsBrains);

UnaryValues<float> MathValues(float) {
  return HWY_DYNAMIC_DISPATCH(MathValuesFloats);
}
UnaryValues<BFloat16> MathValues(BFloat16) {
  return HWY_DYNAMIC_DISPATCH(MathValuesBrains);
}
UnaryGrads<float> MathGrads(float) {
  return HWY_DYNAMIC_DISPATCH(MathGradsFloats);
}
UnaryGrads<BFloat16> MathGrads(BFloat16) {
  return HWY_DYNAMIC_DISPATCH(MathGradsBrains);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
