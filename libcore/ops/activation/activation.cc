// SPDX-License-Identifier: Apache-2.0
// Activations, Out = F(X), X@GRAD = Out@GRAD * D:
//
//   op           F(x)                                   D
//   sigmoid      1 / (1 + exp(-x))                      Out (1 - Out)
//   tanh         tanh x                                 1 - Out^2
//   silu         x s(x), s the sigmoid                  s (1 + x (1 - s))
//   swish        silu: PaddlePaddle does not read its attr beta
//   gelu         x Phi(x); approximate: by tanh         Phi + x phi
//   mish         x tanh(softplus x)                     by the product rule
//   elu          x; alpha (exp x - 1) below 0           1; alpha exp x
//   celu         x; alpha (exp(x / alpha) - 1) below 0  1; exp(x / alpha)
//   selu         scale times elu                        scale times elu's
//   relu6        min(max(0, x), threshold)              1 inside, else 0
//   brelu        min(max(t_min, x), t_max)              1 inside, else 0
//   leaky_relu   x; alpha x below 0                     1; alpha
//   thresholded_relu  x above threshold, else 0         1; 0
//   hard_sigmoid slope x + offset, within [0, 1]        slope inside, else 0
//   hard_swish   x min(max(0, x + offset), threshold) / scale
//   hard_shrink  0 within +-threshold, else x           0; 1
//   softshrink   0 within +-lambda, else nearer by it   0; 1
//   softplus     log(1 + exp(beta x)) / beta            s(beta x)
//                x above threshold                      1
//   soft_relu    log(1 + exp x), x within +-threshold   1 - exp(-Out)
//   logsigmoid   log of the sigmoid                     s(-x)
//   tanh_shrink  x - tanh x                             tanh^2 x
//   softsign     x / (1 + |x|)                          1 / (1 + |x|)^2
//   stanh        scale_b tanh(scale_a x)
//   logit        log(x / (1 - x)), x within [eps, 1 - eps]
// Second gradients: sigmoid, tanh, elu, celu, leaky_relu, softplus.
// NaN goes through. At a kink D is what PaddlePaddle takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/ops/activation/unary_second.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/common/op_formula.h"

namespace pd {
namespace {

template <typename T>
T SigmoidOf(T x) {
  return T(1) / (T(1) + std::exp(-x));
}
template <typename T>
T SoftplusOf(T x) {  // without overflow
  return std::max(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
}

template <typename T>
struct Sigmoid : OfOut {
  T F(T x) const { return SigmoidOf(x); }
  T D(T out) const { return out * (T(1) - out); }
  static constexpr const char* kSecondDOut = "fwd_grad_out";
  T D2(T out) const { return T(1) - T(2) * out; }
};

template <typename T>
struct Tanh : OfOut {
  T F(T x) const { return std::tanh(x); }
  T D(T out) const { return T(1) - out * out; }
  T D2(T out) const { return T(-2) * out; }
};

template <typename T>
struct Silu : OfX {
  T F(T x) const { return x / (T(1) + std::exp(-x)); }
  T D(T x) const {
    const T s = SigmoidOf(x);
    return s * (T(1) + x * (T(1) - s));
  }
};

template <typename T>
struct Gelu : OfX {
  Gelu(const OpDesc& op) : OfX(op), by_tanh(op.Attr<bool>("approximate")) {}
  static constexpr T kInner = T(0.7978845608028654);  // sqrt(2 / pi)
  static constexpr T kCube = T(0.044715);
  T Cdf(T x) const { return T(0.5) * (T(1) + std::erf(x * T(M_SQRT1_2))); }
  T F(T x) const {
    if (!by_tanh) return x * Cdf(x);
    return T(0.5) * x * (T(1) + std::tanh(kInner * (x + kCube * x * x * x)));
  }
  T D(T x) const {
    if (!by_tanh)
      return Cdf(x) + x * std::exp(T(-0.5) * x * x) * (kInner / T(2));
    const T t = std::tanh(kInner * (x + kCube * x * x * x));
    const T inner = kInner * (T(1) + T(3) * kCube * x * x);
    return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
  }
  bool by_tanh;
};

template <typename T>
struct Mish : OfX {
  Mish(const OpDesc& op) : OfX(op), threshold(op.Attr<float>("threshold")) {}
  T Soft(T x) const { return x > threshold ? x : SoftplusOf(x); }
  T F(T x) const { return x * std::tanh(Soft(x)); }
  T D(T x) const {
    const T t = std::tanh(Soft(x));
    return t + x * (T(1) - t * t) * SigmoidOf(x);
  }
  T threshold;
};

template <typename T>
struct Elu : OfX {
  Elu(const OpDesc& op) : OfX(op), alpha(op.Attr<float>("alpha")) {}
  T F(T x) const { return x > T(0) ? x : alpha * std::expm1(x); }
  T D(T x) const { return x > T(0) ? T(1) : alpha * std::exp(x); }
  T D2(T x) const { return x > T(0) ? T(0) : alpha * std::exp(x); }
  T alpha;
};

template <typename T>
struct Celu : OfX {
  Celu(const OpDesc& op) : OfX(op), alpha(op.Attr<float>("alpha")) {}
  T F(T x) const { return x > T(0) ? x : alpha * std::expm1(x / alpha); }
  T D(T x) const { return x > T(0) ? T(1) : std::exp(x / alpha); }
  T D2(T x) const { return x > T(0) ? T(0) : std::exp(x / alpha) / alpha; }
  T alpha;
};

template <typename T>
struct Selu : OfOut {
  Selu(const OpDesc& op)
      : OfOut(op),
        scale(op.Attr<float>("scale")),
        alpha(op.Attr<float>("alpha")) {}
  T F(T x) const { return scale * (x > T(0) ? x : alpha * std::expm1(x)); }
  T D(T out) const { return out > T(0) ? scale : out + scale * alpha; }
  T scale, alpha;
};

template <typename T>
struct Relu6 : OfOut {
  Relu6(const OpDesc& op) : OfOut(op), top(op.Attr<float>("threshold")) {}
  T F(T x) const { return x < T(0) ? T(0) : (x > top ? top : x); }
  T D(T out) const { return out > T(0) && out < top ? T(1) : T(0); }
  T top;
};

template <typename T>
struct BoundedRelu : OfX {
  BoundedRelu(const OpDesc& op)
      : OfX(op), low(op.Attr<float>("t_min")), high(op.Attr<float>("t_max")) {}
  T F(T x) const { return x < low ? low : (x > high ? high : x); }
  T D(T x) const { return x > low && x < high ? T(1) : T(0); }
  T low, high;
};

template <typename T>
struct LeakyRelu : OfX {
  LeakyRelu(const OpDesc& op) : OfX(op), alpha(op.Attr<float>("alpha")) {}
  T F(T x) const { return x < T(0) ? alpha * x : x; }
  T D(T x) const { return x < T(0) ? alpha : T(1); }
  T alpha;
};

template <typename T>
struct ThresholdedRelu : OfX {
  ThresholdedRelu(const OpDesc& op)
      : OfX(op), threshold(op.Attr<float>("threshold")) {}
  T F(T x) const { return x <= threshold ? T(0) : x; }
  T D(T x) const { return x > threshold ? T(1) : T(0); }
  T threshold;
};

template <typename T>
struct HardSigmoid : OfOut {
  HardSigmoid(const OpDesc& op)
      : OfOut(op),
        slope(op.Attr<float>("slope")),
        offset(op.Attr<float>("offset")) {}
  T F(T x) const {
    const T y = slope * x + offset;
    return y < T(0) ? T(0) : (y > T(1) ? T(1) : y);
  }
  T D(T out) const { return out > T(0) && out < T(1) ? slope : T(0); }
  T slope, offset;
};

template <typename T>
struct HardSwish : OfX {
  HardSwish(const OpDesc& op)
      : OfX(op),
        threshold(op.Attr<float>("threshold")),
        scale(op.Attr<float>("scale")),
        offset(op.Attr<float>("offset")) {}
  T F(T x) const {
    const T y = x + offset;
    return x * (y < T(0) ? T(0) : (y > threshold ? threshold : y)) / scale;
  }
  T D(T x) const {
    const T y = x + offset;
    if (y >= threshold) return T(1);
    return y > T(0) ? (x + y) / scale : T(0);
  }
  T threshold, scale, offset;
};

template <typename T>
struct HardShrink : OfX {
  HardShrink(const OpDesc& op) : OfX(op), by(op.Attr<float>("threshold")) {}
  T F(T x) const { return x >= -by && x <= by ? T(0) : x; }
  T D(T x) const { return x < -by || x > by ? T(1) : T(0); }
  T by;
};

template <typename T>
struct SoftShrink : OfX {
  SoftShrink(const OpDesc& op) : OfX(op), by(op.Attr<float>("lambda")) {}
  T F(T x) const {
    return x > by ? x - by : (x < -by ? x + by : (x != x ? x : T(0)));
  }
  T D(T x) const { return x < -by || x > by ? T(1) : T(0); }
  T by;
};

template <typename T>
struct Softplus : OfX {
  Softplus(const OpDesc& op)
      : OfX(op),
        beta(op.Attr<float>("beta")),
        threshold(op.Attr<float>("threshold")) {}
  T F(T x) const {
    return beta * x > threshold ? x : SoftplusOf(beta * x) / beta;
  }
  T D(T x) const { return beta * x > threshold ? T(1) : SigmoidOf(beta * x); }
  T D2(T x) const {
    if (beta * x > threshold) return T(0);
    const T s = SigmoidOf(beta * x);
    return beta * s * (T(1) - s);
  }
  T beta, threshold;
};

template <typename T>
struct SoftRelu : OfOut {
  SoftRelu(const OpDesc& op) : OfOut(op), bound(op.Attr<float>("threshold")) {}
  T F(T x) const {
    return SoftplusOf(x < -bound ? -bound : (x > bound ? bound : x));
  }
  T D(T out) const {
    return out > -bound && out < bound ? -std::expm1(-out) : T(0);
  }
  T bound;
};

template <typename T>
struct LogSigmoid : OfX {
  T F(T x) const { return -SoftplusOf(-x); }
  T D(T x) const { return SigmoidOf(-x); }
};

template <typename T>
struct TanhShrink : OfX {
  T F(T x) const { return x - std::tanh(x); }
  T D(T x) const { return std::tanh(x) * std::tanh(x); }
};

template <typename T>
struct Softsign : OfX {
  T F(T x) const { return x / (T(1) + std::fabs(x)); }
  T D(T x) const {
    const T y = T(1) + std::fabs(x);
    return T(1) / (y * y);
  }
};

template <typename T>
struct ScaledTanh : OfX {
  ScaledTanh(const OpDesc& op)
      : OfX(op), a(op.Attr<float>("scale_a")), b(op.Attr<float>("scale_b")) {}
  T F(T x) const { return b * std::tanh(a * x); }
  T D(T x) const {
    const T t = std::tanh(a * x);
    return a * b * (T(1) - t * t);
  }
  T a, b;
};

template <typename T>
struct Logit : OfX {
  Logit(const OpDesc& op) : OfX(op), eps(op.Attr<float>("eps")) {}
  T F(T x) const {
    if (eps == T(0) && (x < T(0) || x > T(1)))
      return std::numeric_limits<T>::quiet_NaN();
    x = x < eps ? eps : (x > T(1) - eps ? T(1) - eps : x);
    return std::log(x / (T(1) - x));
  }
  T D(T x) const {
    if (x < eps || x > T(1) - eps)
      return eps == T(0) ? std::numeric_limits<T>::quiet_NaN() : T(0);
    return T(1) / (x * (T(1) - x));
  }
  T eps;
};

// `approximate` is the only attribute of the family that is no float.
// D' = (2 - x^2) exp(-x^2 / 2) / sqrt(2 pi); the constant is erf's slope at 0
// over sqrt(8), right in every dtype.
absl::StatusOr<std::vector<OpDesc>> GeluSecond(const GradRequest& request) {
  const OpDesc& grad = request.op;
  if (grad.Attr<bool>("approximate"))
    return Unimplemented(
        "op 'gelu_grad' has no gradient where gelu is "
        "approximate");
  const std::string x = grad.In("X"), dout = grad.In("Out@GRAD");
  const std::string p = CotangentOf(grad, "X@GRAD");
  OpFormula f(grad);
  if (request.needs_grad(dout)) f.Add(GradOpAgain(grad));
  if (request.needs_grad(x)) {
    const std::string square = f.Mul(x, x);
    const std::string bell = f.Mul(f.Unary("exp", f.Scale(square, -0.5)),
                                   f.Unary("rsqrt", f.Like(x, 8)));
    OpDesc slope;
    slope.type = "erf_grad";
    slope.SetInput("X", {f.Like(x, 0)});
    slope.SetInput("Out@GRAD", {f.Mul(f.Mul(p, dout), bell)});
    f.Give(f.Mul(f.Apply(std::move(slope), "X@GRAD"), f.Scale(square, -1, 2)),
           x);
  }
  return f.Take();
}

absl::Status AddGelu(OpRegistry* registry) {
  using unary_internal::Bind;
  using unary_internal::BindGrad;
  OpDef op("gelu");
  op.Input("X").Output("Out").Attr("approximate", false).Infer(InferUnary);
  op.Grad(GradSpec{"gelu_grad", {"X"}, {}, {"Out"}, {"X"}});
  op.Reference(Bind<Gelu, UnaryTypes::kReal>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad("gelu_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("approximate", false).Infer(unary_internal::InferGrad);
  grad.Grad(GradMaker(GeluSecond));
  grad.Reference(BindGrad<Gelu, UnaryTypes::kReal>);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterActivation(OpRegistry* r) {
  constexpr UnaryTypes kComplex = UnaryTypes::kWithComplex;
  absl::Status s = AddGelu(r);
  s.Update(AddUnaryTwice<Sigmoid, kComplex>(r, "sigmoid", "sigmoid_grad_grad"));
  s.Update(AddUnaryTwice<Tanh, kComplex>(r, "tanh", "tanh_grad_grad"));
  s.Update(AddUnary<Silu, kComplex>(r, "silu", {}, true));
  s.Update(AddUnary<Silu>(r, "swish", {{"beta", 1.0f}}));
  s.Update(AddUnary<Mish>(r, "mish", {{"threshold", 20.0f}}));
  s.Update(
      AddUnaryTwice<Elu>(r, "elu", "elu_grad_grad", {{"alpha", 1.0f}}, true));
  s.Update(AddUnaryTwice<Celu>(r, "celu", "celu_grad_grad", {{"alpha", 1.0f}}));
  s.Update(AddUnary<Selu>(
      r, "selu",
      {{"scale", 1.0507009873554805f}, {"alpha", 1.6732632423543772f}}));
  s.Update(AddUnary<Relu6>(r, "relu6", {{"threshold", 6.0f}}));
  s.Update(
      AddUnary<BoundedRelu>(r, "brelu", {{"t_min", 0.0f}, {"t_max", 24.0f}}));
  s.Update(AddUnaryTwice<LeakyRelu>(r, "leaky_relu", "leaky_relu_grad_grad",
                                    {{"alpha", 0.02f}}));
  s.Update(
      AddUnary<ThresholdedRelu>(r, "thresholded_relu", {{"threshold", 1.0f}}));
  s.Update(AddUnary<HardSigmoid>(r, "hard_sigmoid",
                                 {{"slope", 0.2f}, {"offset", 0.5f}}));
  s.Update(AddUnary<HardSwish>(
      r, "hard_swish",
      {{"threshold", 6.0f}, {"scale", 6.0f}, {"offset", 3.0f}}));
  s.Update(AddUnary<HardShrink>(r, "hard_shrink", {{"threshold", 0.5f}}));
  s.Update(AddUnary<SoftShrink>(r, "softshrink", {{"lambda", 0.5f}}));
  s.Update(AddUnaryTwice<Softplus>(r, "softplus", "softplus_double_grad",
                                   {{"beta", 1.0f}, {"threshold", 20.0f}}));
  s.Update(AddUnary<SoftRelu>(r, "soft_relu", {{"threshold", 40.0f}}));
  s.Update(AddUnary<LogSigmoid>(r, "logsigmoid"));
  s.Update(AddUnary<TanhShrink>(r, "tanh_shrink"));
  s.Update(AddUnary<Softsign>(r, "softsign"));
  s.Update(AddUnary<ScaledTanh>(r, "stanh",
                                {{"scale_a", 0.67f}, {"scale_b", 1.7159f}}));
  s.Update(AddUnary<Logit>(r, "logit", {{"eps", 1e-6f}}));
  return s;
}

}  // namespace pd
