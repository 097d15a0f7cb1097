// SPDX-License-Identifier: Apache-2.0
// Mathematical functions, Out = F(X), X@GRAD = Out@GRAD * conj(D):
//   exp Out, expm1 Out + 1; log 1/X, log2, log10, log1p 1/(1+X)
//   sqrt 1/(2 Out), rsqrt -Out^3/2, square 2X, reciprocal -Out^2
//   sin cos X, cos -sin X, tan 1 + tan^2 X; asin, acos, atan; sinh, cosh;
//   asinh, acosh, atanh; erf 2/sqrt(pi) exp(-X^2), erfinv the inverse of it
//   lgamma digamma(X), digamma trigamma(X)
//   floor, ceil, round (halves away from 0), trunc, sign: 0
// exp and the logarithms of integers are float32. Second gradients: log, sqrt,
// rsqrt, square, sin, cos. sign's gradient is a scale op by 0, as in
// PaddlePaddle.
#include <cmath>
#include <complex>
#include <limits>

#include "libcore/ops/activation/gamma_functions.h"
#include "libcore/ops/activation/unary_second.h"

namespace pd {
namespace {

template <typename T>
struct Exp : OfOut {
  T F(T x) const { return std::exp(x); }
  T D(T out) const { return out; }
};
template <typename T>
T ExpMinus1(T x) {
  return std::expm1(x);
}
// exp(a + bi) - 1 without cancellation for small a and b.
template <typename T>
std::complex<T> ExpMinus1(std::complex<T> x) {
  const T half = std::sin(x.imag() / T(2));
  const T real = std::expm1(x.real());
  return {real * std::cos(x.imag()) - T(2) * half * half,
          std::exp(x.real()) * std::sin(x.imag())};
}
template <typename T>
struct Expm1 : OfOut {
  T F(T x) const { return ExpMinus1(x); }
  T D(T out) const { return out + T(1); }
};
template <typename T>
struct Log : OfX {
  T F(T x) const { return std::log(x); }
  T D(T x) const { return T(1) / x; }
  T D2(T x) const { return T(-1) / (x * x); }
};
template <typename T>
struct Log2 : OfX {
  T F(T x) const { return std::log2(x); }
  T D(T x) const { return T(1) / (x * T(M_LN2)); }
};
template <typename T>
struct Log10 : OfX {
  T F(T x) const { return std::log10(x); }
  T D(T x) const { return T(1) / (x * T(M_LN10)); }
};
template <typename T>
struct Log1p : OfX {
  T F(T x) const { return std::log1p(x); }
  T D(T x) const { return T(1) / (T(1) + x); }
};
template <typename T>
struct Sqrt : OfOut {
  T F(T x) const { return std::sqrt(x); }
  T D(T out) const { return T(0.5) / out; }
  static constexpr bool kSecondReadsDx = true;
  T D2(T out) const { return T(-1) / out; }
};
template <typename T>
struct Rsqrt : OfOut {
  T F(T x) const { return T(1) / std::sqrt(x); }
  T D(T out) const { return T(-0.5) * out * out * out; }
  static constexpr bool kSecondReadsDx = true;
  T D2(T out) const { return T(3) / out; }
};
template <typename T>
struct Square : OfX {
  T F(T x) const { return static_cast<T>(x * x); }
  T D(T x) const { return static_cast<T>(T(2) * x); }
  T D2(T) const { return T(2); }
};
template <typename T>
struct Reciprocal : OfOut {
  T F(T x) const { return T(1) / x; }
  T D(T out) const { return -out * out; }
};
template <typename T>
struct Sin : OfX {
  T F(T x) const { return std::sin(x); }
  T D(T x) const { return std::cos(x); }
  T D2(T x) const { return -std::sin(x); }
};
template <typename T>
struct Cos : OfX {
  T F(T x) const { return std::cos(x); }
  T D(T x) const { return -std::sin(x); }
  T D2(T x) const { return -std::cos(x); }
};
template <typename T>
struct Tan : OfX {
  T F(T x) const { return std::tan(x); }
  T D(T x) const { return T(1) + std::tan(x) * std::tan(x); }
};
template <typename T>
struct Asin : OfX {
  T F(T x) const { return std::asin(x); }
  T D(T x) const { return T(1) / std::sqrt(T(1) - x * x); }
};
template <typename T>
struct Acos : OfX {
  T F(T x) const { return std::acos(x); }
  T D(T x) const { return T(-1) / std::sqrt(T(1) - x * x); }
};
template <typename T>
struct Atan : OfX {
  T F(T x) const { return std::atan(x); }
  T D(T x) const { return T(1) / (T(1) + x * x); }
};
template <typename T>
struct Sinh : OfX {
  T F(T x) const { return std::sinh(x); }
  T D(T x) const { return std::cosh(x); }
};
template <typename T>
struct Cosh : OfX {
  T F(T x) const { return std::cosh(x); }
  T D(T x) const { return std::sinh(x); }
};
template <typename T>
struct Asinh : OfX {
  T F(T x) const { return std::asinh(x); }
  T D(T x) const { return T(1) / std::sqrt(x * x + T(1)); }
};
template <typename T>
struct Acosh : OfX {
  T F(T x) const { return std::acosh(x); }
  // Two roots: the branch of a complex acosh.
  T D(T x) const { return T(1) / (std::sqrt(x - T(1)) * std::sqrt(x + T(1))); }
};
template <typename T>
struct Atanh : OfX {
  T F(T x) const { return std::atanh(x); }
  T D(T x) const { return T(1) / (T(1) - x * x); }
};
template <typename T>
struct Erf : OfX {
  T F(T x) const { return std::erf(x); }
  T D(T x) const { return T(M_2_SQRTPI) * std::exp(-x * x); }
};

// Winitzki's approximation, then Newton's method on erfc of the nearer tail.
double InverseErf(double y) {
  if (!(std::fabs(y) < 1.0)) {
    if (std::fabs(y) == 1.0)
      return std::copysign(std::numeric_limits<double>::infinity(), y);
    return std::numeric_limits<double>::quiet_NaN();
  }
  constexpr double kA = 0.147;
  const double target = 1.0 - std::fabs(y);
  const double log = std::log1p(-y * y);
  const double middle = 2.0 / (M_PI * kA) + 0.5 * log;
  double x = std::sqrt(std::sqrt(middle * middle - log / kA) - middle);
  for (int round = 0; round < 4; ++round) {
    const double slope = -M_2_SQRTPI * std::exp(-x * x);
    const double newton = (std::erfc(x) - target) / slope;
    x -= newton / (1.0 + x * newton);  // Halley
  }
  return std::copysign(x, y);
}
template <typename T>
struct Erfinv : OfOut {
  T F(T x) const { return static_cast<T>(InverseErf(x)); }
  T D(T out) const { return std::exp(out * out) / T(M_2_SQRTPI); }
};

template <typename T>
struct Lgamma : OfX {
  T F(T x) const {
    int sign;  // the library's global one is not for threads
    if constexpr (std::is_same_v<T, float>)
      return ::lgammaf_r(x, &sign);
    else
      return ::lgamma_r(x, &sign);
  }
  T D(T x) const { return static_cast<T>(DigammaOf(x)); }
};
template <typename T>
struct Digamma : OfX {
  T F(T x) const { return static_cast<T>(DigammaOf(x)); }
  T D(T x) const { return static_cast<T>(TrigammaOf(x)); }
};

template <typename T>
struct Floor : OfNothing {
  T F(T x) const { return std::floor(x); }
};
template <typename T>
struct Ceil : OfNothing {
  T F(T x) const { return std::ceil(x); }
};
template <typename T>
struct Round : OfNothing {
  T F(T x) const { return std::round(x); }
};
template <typename T>
struct Trunc : OfNothing {
  T F(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::trunc(x);
  }
};
template <typename T>
struct UnarySign : OfNothing {
  T F(T x) const {
    return x > T(0) ? T(1) : (x < T(0) ? static_cast<T>(-1) : x);
  }
};

absl::StatusOr<std::vector<OpDesc>> SignGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {GradName(request.op.Out("Out"))});
  op.SetOutput("Out", {GradName(request.op.In("X"))});
  op.attrs["scale"] = 0.0f;
  op.attrs["bias"] = 0.0f;
  op.attrs["bias_after_scale"] = true;
  ops.push_back(std::move(op));
  return ops;
}

absl::Status AddSign(OpRegistry* registry) {
  OpDef op("sign");
  op.Input("X").Output("Out").Infer(InferUnary).Grad(GradMaker(SignGrad));
  op.Reference(unary_internal::Bind<UnarySign, UnaryTypes::kWithIntegers>);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterUnaryMath(OpRegistry* r) {
  constexpr UnaryTypes kComplex = UnaryTypes::kWithComplex;
  constexpr UnaryTypes kInteger = UnaryTypes::kWithIntegers;
  absl::Status s = AddSign(r);
  s.Update(AddUnary<Exp, UnaryTypes::kComplexPromoting>(r, "exp"));
  s.Update(AddUnary<Expm1, UnaryTypes::kComplexPromoting>(r, "expm1"));
  s.Update(AddUnaryTwice<Log, UnaryTypes::kComplexPromoting>(r, "log",
                                                             "log_grad_grad"));
  s.Update(AddUnary<Log2, UnaryTypes::kPromoting>(r, "log2"));
  s.Update(AddUnary<Log10, UnaryTypes::kPromoting>(r, "log10"));
  s.Update(AddUnary<Log1p, UnaryTypes::kPromoting>(r, "log1p"));
  s.Update(AddUnaryTwice<Sqrt, kComplex>(r, "sqrt", "sqrt_grad_grad"));
  s.Update(AddUnaryTwice<Rsqrt>(r, "rsqrt", "rsqrt_grad_grad"));
  s.Update(AddUnaryTwice<Square, kInteger>(r, "square", "square_grad_grad"));
  s.Update(AddUnary<Reciprocal, kComplex>(r, "reciprocal"));
  s.Update(AddUnaryTwice<Sin, kComplex>(r, "sin", "sin_double_grad"));
  s.Update(AddUnaryTwice<Cos, kComplex>(r, "cos", "cos_double_grad"));
  s.Update(AddUnary<Tan, kComplex>(r, "tan"));
  s.Update(AddUnary<Asin, kComplex>(r, "asin"));
  s.Update(AddUnary<Acos, kComplex>(r, "acos"));
  s.Update(AddUnary<Atan, kComplex>(r, "atan"));
  s.Update(AddUnary<Sinh, kComplex>(r, "sinh"));
  s.Update(AddUnary<Cosh, kComplex>(r, "cosh"));
  s.Update(AddUnary<Asinh, kComplex>(r, "asinh"));
  s.Update(AddUnary<Acosh, kComplex>(r, "acosh"));
  s.Update(AddUnary<Atanh, kComplex>(r, "atanh"));
  s.Update(AddUnary<Erf>(r, "erf"));
  s.Update(AddUnary<Erfinv>(r, "erfinv"));
  s.Update(AddUnary<Lgamma>(r, "lgamma"));
  s.Update(AddUnary<Digamma>(r, "digamma"));
  s.Update(AddUnary<Floor>(r, "floor"));
  s.Update(AddUnary<Ceil>(r, "ceil"));
  s.Update(AddUnary<Round>(r, "round"));
  s.Update(AddUnary<Trunc, kInteger>(r, "trunc"));
  return s;
}

}  // namespace pd
