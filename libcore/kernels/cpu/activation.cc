// SPDX-License-Identifier: Apache-2.0
// relu and its kin, and those made of the exponential, on whatever layout
// comes: element by element, padding included. Padding is zero and has to stay
// so; a function that makes something else of 0 is left to the reference where
// there is padding. Formulas: libcore/ops/activation/activation.cc.
#include "libcore/kernels/cpu/activation.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "absl/strings/strip.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/activation.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "libcore/kernels/cpu/erfc.inc"
#include "libcore/kernels/cpu/unary_loops.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
// Comparisons are such that NaN goes through.
struct ReluOf {
  explicit ReluOf(const Activation&) {}
  V Value(V x) const { return hn::IfThenZeroElse(hn::Lt(x, Zero()), x); }
  V Slope(V y) const {
    return hn::IfThenElseZero(hn::Gt(y, Zero()), Const(1.0f));
  }
};

struct Relu6Of {
  explicit Relu6Of(const Activation& a) : top(Const(a.threshold)) {}
  V Value(V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, Zero()),
                              hn::IfThenElse(hn::Gt(x, top), top, x));
  }
  V Slope(V y) const {
    return hn::IfThenElseZero(hn::And(hn::Gt(y, Zero()), hn::Lt(y, top)),
                              Const(1.0f));
  }
  V top;
};

struct LeakyReluOf {
  explicit LeakyReluOf(const Activation& a) : alpha(Const(a.alpha)) {}
  V Value(V x) const {
    return hn::IfThenElse(hn::Lt(x, Zero()), hn::Mul(alpha, x), x);
  }
  V Slope(V x) const {
    return hn::IfThenElse(hn::Lt(x, Zero()), alpha, Const(1.0f));
  }
  V alpha;
};

struct HardSwishOf {
  explicit HardSwishOf(const Activation& a)
      : threshold(Const(a.threshold)),
        inverse(Const(1.0f / a.scale)),
        offset(Const(a.offset)) {}
  V Value(V x) const {
    const V y = hn::Add(x, offset);
    const V inside = hn::IfThenZeroElse(
        hn::Lt(y, Zero()), hn::IfThenElse(hn::Gt(y, threshold), threshold, y));
    return hn::Mul(hn::Mul(x, inside), inverse);
  }
  V Slope(V x) const {
    const V y = hn::Add(x, offset);
    const V rising =
        hn::IfThenElseZero(hn::Gt(y, Zero()), hn::Mul(hn::Add(x, y), inverse));
    return hn::IfThenElse(hn::Ge(y, threshold), Const(1.0f), rising);
  }
  V threshold, inverse, offset;
};

struct SwishOf {
  explicit SwishOf(const Activation&) {}
  // 0 below -80, where a large x would show that it is not.
  V Factor(V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, Const(-80.0f)), SigmoidOf(x));
  }
  V Value(V x) const { return hn::Mul(x, Factor(x)); }
  V Slope(V x) const {
    const V s = Factor(x);
    return hn::Mul(s, hn::MulAdd(x, hn::Sub(Const(1.0f), s), Const(1.0f)));
  }
};

struct SigmoidFunction {
  explicit SigmoidFunction(const Activation&) {}
  V Value(V x) const { return SigmoidOf(x); }
  V Slope(V y) const { return hn::NegMulAdd(y, y, y); }
};

struct TanhFunction {
  explicit TanhFunction(const Activation&) {}
  V Value(V x) const {
    const V near = hn::Max(hn::Min(x, Const(20.0f)), Const(-20.0f));
    return KeepNan(x, hn::Tanh(kTag, near));
  }
  V Slope(V y) const { return hn::NegMulAdd(y, y, Const(1.0f)); }
};

struct ErfFunction {
  explicit ErfFunction(const Activation&) {}
  V Value(V x) const { return ErfOf(x); }
  // 2 / sqrt(pi) exp(-x^2)
  V Slope(V x) const {
    const V z = hn::Min(hn::Abs(x), Const(20.0f));
    return KeepNan(x, hn::Mul(Const(1.1283792f), ExpOfMinusSquare(z, Zero())));
  }
};

// Calls run with the function's type.
template <class Run>
void ForFunction(Function function, const Run& run) {
  switch (function) {
    case Function::kRelu:
      return run(static_cast<ReluOf*>(nullptr));
    case Function::kRelu6:
      return run(static_cast<Relu6Of*>(nullptr));
    case Function::kLeakyRelu:
      return run(static_cast<LeakyReluOf*>(nullptr));
    case Function::kHardSwish:
      return run(static_cast<HardSwishOf*>(nullptr));
    case Function::kSwish:
      return run(static_cast<SwishOf*>(nullptr));
    case Function::kSigmoid:
      return run(static_cast<SigmoidFunction*>(nullptr));
    case Function::kTanh:
      return run(static_cast<TanhFunction*>(nullptr));
    case Function::kErf:
      return run(static_cast<ErfFunction*>(nullptr));
    default:
      return;  // math_functions.cc has the others
  }
}

// Functions called from outside, by the type of the data.
#define PD_ACTIVATIONS(T, Name)                                               \
  void Values##Name(const Activation& a, const T* x, int64_t n, T* out) {     \
    ForFunction(a.function, [&](auto* f) {                                    \
      ValuesOf<std::remove_pointer_t<decltype(f)>>(a, x, n, out);             \
    });                                                                       \
  }                                                                           \
  void Grads##Name(const Activation& a, const T* v, const T* dout, int64_t n, \
                   T* dx) {                                                   \
    ForFunction(a.function, [&](auto* f) {                                    \
      GradsOf<std::remove_pointer_t<decltype(f)>>(a, v, dout, n, dx);         \
    });                                                                       \
  }
PD_ACTIVATIONS(float, Floats)
PD_ACTIVATIONS(BFloat16, Brains)
#undef PD_ACTIVATIONS

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(ValuesFloats);
HWY_EXPORT(GradsFloats);
HWY_EXPORT(ValuesBrains);
HWY_EXPORT(GradsBrains);

namespace {

// The functions for data of type T.
UnaryValues<float> Values(float) { return HWY_DYNAMIC_DISPATCH(ValuesFloats); }
UnaryValues<BFloat16> Values(BFloat16) {
  return HWY_DYNAMIC_DISPATCH(ValuesBrains);
}
UnaryGrads<float> Grads(float) { return HWY_DYNAMIC_DISPATCH(GradsFloats); }
UnaryGrads<BFloat16> Grads(BFloat16) {
  return HWY_DYNAMIC_DISPATCH(GradsBrains);
}

bool IsMath(Function function) { return function >= Function::kAbs; }

struct Kind {
  const char* type;
  Function function;
  bool of_out;  // the gradient reads Out, not X
  bool keeps_zero;
};
constexpr Kind kKinds[] = {
    {"relu", Function::kRelu, true, true},
    {"relu6", Function::kRelu6, true, true},
    {"leaky_relu", Function::kLeakyRelu, false, true},
    {"hard_swish", Function::kHardSwish, false, true},
    {"swish", Function::kSwish, false, true},
    {"silu", Function::kSwish, false, true},
    {"sigmoid", Function::kSigmoid, true, false},
    {"tanh", Function::kTanh, true, true},
    {"erf", Function::kErf, false, true},
    {"abs", Function::kAbs, false, true},
    {"clip", Function::kClip, false, false},
    {"floor", Function::kFloor, false, true},
    {"ceil", Function::kCeil, false, true},
    {"round", Function::kRound, false, true},
    {"softshrink", Function::kSoftShrink, false, true},
    {"hard_shrink", Function::kHardShrink, false, true},
    {"sqrt", Function::kSqrt, true, true},
    {"rsqrt", Function::kRsqrt, true, false},
    {"exp", Function::kExp, true, false},
    {"expm1", Function::kExpm1, true, true},
    {"log", Function::kLog, false, false},
    {"log2", Function::kLog2, false, false},
    {"log10", Function::kLog10, false, false},
    {"log1p", Function::kLog1p, false, true},
    {"sin", Function::kSin, false, true},
    {"cos", Function::kCos, false, false},
    {"tan", Function::kTan, false, true},
    {"atan", Function::kAtan, false, true},
    {"softplus", Function::kSoftplus, false, false},
    {"mish", Function::kMish, false, true},
    {"elu", Function::kElu, false, true},
    {"selu", Function::kSelu, true, true},
    {"logsigmoid", Function::kLogSigmoid, false, false},
    {"tanh_shrink", Function::kTanhShrink, false, true},
    {"logit", Function::kLogit, false, false},
};

const Kind& KindOf(const OpDesc& op) {
  const absl::string_view type = absl::StripSuffix(op.type, "_grad");
  const auto* kind =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const Kind& k) { return type == k.type; });
  PD_INVARIANT(kind != std::end(kKinds));
  return *kind;
}

Activation ReadActivation(const OpDesc& op, Function function, DType dtype) {
  Activation a;
  a.function = function;
  a.threshold = op.AttrOr("threshold", a.threshold);
  a.scale = op.AttrOr("scale", a.scale);
  a.offset = op.AttrOr("offset", a.offset);
  a.alpha = op.AttrOr("alpha", a.alpha);
  a.beta = op.AttrOr("beta", a.beta);
  a.lambda = op.AttrOr("lambda", a.lambda);
  a.eps = op.AttrOr("eps", a.eps);
  a.low = op.AttrOr("min", a.low);
  a.high = op.AttrOr("max", a.high);
  if (dtype == DType::kBFloat16) {  // clip's bounds are numbers of X's type
    a.low = static_cast<float>(BFloat16(a.low));
    a.high = static_cast<float>(BFloat16(a.high));
  }
  return a;
}

// Elements per thread at least: cheap functions wait for memory.
int64_t Grain(Function function) {
  const bool cheap =
      function < Function::kSwish ||
      (function >= Function::kAbs && function <= Function::kHardShrink);
  return cheap ? 16384 : 4096;
}

// A refusal of attributes with which the vectors differ from the reference.
absl::Status CheckFunction(const BindContext& context, const Activation& a) {
  if (a.function == Function::kClip &&
      (context.Input("Min") != nullptr || context.Input("Max") != nullptr))
    return Unimplemented("a bound is a tensor");
  // Above 10 softplus is the identity for all that tanh shows of it.
  if (a.function == Function::kMish && !(a.threshold >= 10))
    return Unimplemented("the threshold is below 10");
  if (a.function == Function::kLogit && !(a.eps > 0))
    return Unimplemented("eps is 0");
  const bool shrinks = a.function == Function::kHardShrink;
  if ((shrinks && !(a.threshold >= 0)) ||
      (a.function == Function::kSoftShrink && !(a.lambda >= 0)))
    return Unimplemented("the threshold is negative");
  return absl::OkStatus();
}

// Whether the slope at 0 is infinite: times the zeros of padding it is NaN.
bool HasPole(Function f) {
  return f == Function::kSqrt || f == Function::kLog || f == Function::kLog2 ||
         f == Function::kLog10;
}

bool IsTaken(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat32 ||
         tensor.dtype() == DType::kBFloat16;
}

template <typename T>
Step ValueStep(const Activation& a, Tensor* x, Tensor* out) {
  return [x, out, a, n = x->physical_size()](const RunContext&) {
    const auto run = IsMath(a.function) ? MathValues(T()) : Values(T());
    const T* in = x->data<T>();
    T* result = out->data<T>();
    ParallelFor(n, Grain(a.function), [&](int64_t begin, int64_t end) {
      run(a, in + begin, end - begin, result + begin);
    });
    return absl::OkStatus();
  };
}

template <typename T>
Step GradStep(const Activation& a, Tensor* v, Tensor* dout, Tensor* dx) {
  return [v, dout, dx, a, n = v->physical_size()](const RunContext&) {
    const auto run = IsMath(a.function) ? MathGrads(T()) : Grads(T());
    const T* values = v->data<T>();
    const T* g = dout->data<T>();
    T* result = dx->data<T>();
    ParallelFor(n, Grain(a.function), [&](int64_t begin, int64_t end) {
      run(a, values + begin, g + begin, end - begin, result + begin);
    });
    return absl::OkStatus();
  };
}

}  // namespace

absl::StatusOr<Step> BindActivation(BindContext* context) {
  const Kind& kind = KindOf(context->op());
  Tensor* x = context->Input("X");
  if (!IsTaken(*x)) return Unimplemented("it is for float32 and bfloat16");
  if (!kind.keeps_zero && x->physical_size() != x->size())
    return Unimplemented("the layout has padding, which would not stay zero");
  const Activation a = ReadActivation(context->op(), kind.function, x->dtype());
  PD_RETURN_IF_ERROR(CheckFunction(*context, a));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  return x->dtype() == DType::kFloat32 ? ValueStep<float>(a, x, out)
                                       : ValueStep<BFloat16>(a, x, out);
}

absl::StatusOr<Step> BindActivationGrad(BindContext* context) {
  const Kind& kind = KindOf(context->op());
  Tensor* v = context->Input(kind.of_out ? "Out" : "X");
  Tensor* dout = context->Input("Out@GRAD");
  if (v == nullptr || !IsTaken(*v))
    return Unimplemented("it is for float32 and bfloat16");
  if (HasPole(kind.function) && v->physical_size() != v->size())
    return Unimplemented("the layout has padding, which would not stay zero");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", v->dtype(), v->size()));
  if (context->Input("Out@GRAD")->shape() != v->shape())
    return Unimplemented("the gradient has another shape than its operand");
  const Activation a = ReadActivation(context->op(), kind.function, v->dtype());
  PD_RETURN_IF_ERROR(CheckFunction(*context, a));
  PD_ASSIGN_OR_RETURN(dout, context->In(dout, v->layout()));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), v->layout()));
  context->MayShare(dout, dx);
  return v->dtype() == DType::kFloat32 ? GradStep<float>(a, v, dout, dx)
                                       : GradStep<BFloat16>(a, v, dout, dx);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
