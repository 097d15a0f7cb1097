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
#include "libcore/kernels/cpu/half_vectors.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<decltype(kTag)>;

HWY_INLINE V Const(float value) { return hn::Set(kTag, value); }
HWY_INLINE V Zero() { return hn::Zero(kTag); }
HWY_INLINE V KeepNan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

HWY_INLINE V SigmoidOf(V x) {
  const V near = hn::Max(hn::Min(x, Const(80.0f)), Const(-80.0f));
  const V y =
      hn::Div(Const(1.0f), hn::Add(Const(1.0f), hn::Exp(kTag, hn::Neg(near))));
  return KeepNan(x, y);
}

// Each has Value(x) and Slope(v), where v is x or the value itself as the
// gradient op reads it. Comparisons are such that NaN goes through.
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

template <class F, typename T>
void ValuesOf(const Activation& a, const T* x, int64_t n, T* out) {
  const F f(a);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    StoreNarrow(f.Value(LoadWide(x + i)), out + i);
  if (i < n) {
    const auto mask = hn::FirstN(kTag, static_cast<size_t>(n - i));
    StoreSome(f.Value(LoadSome(x + i, mask)), out + i, mask);
  }
}

template <class F, typename T>
void GradsOf(const Activation& a, const T* v, const T* dout, int64_t n, T* dx) {
  const F f(a);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    StoreNarrow(hn::Mul(f.Slope(LoadWide(v + i)), LoadWide(dout + i)), dx + i);
  if (i < n) {
    const auto mask = hn::FirstN(kTag, static_cast<size_t>(n - i));
    StoreSome(hn::Mul(f.Slope(LoadSome(v + i, mask)), LoadSome(dout + i, mask)),
              dx + i, mask);
  }
}

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
auto Values(float) { return HWY_DYNAMIC_DISPATCH(ValuesFloats); }
auto Values(BFloat16) { return HWY_DYNAMIC_DISPATCH(ValuesBrains); }
auto Grads(float) { return HWY_DYNAMIC_DISPATCH(GradsFloats); }
auto Grads(BFloat16) { return HWY_DYNAMIC_DISPATCH(GradsBrains); }

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
};

const Kind& KindOf(const OpDesc& op) {
  const absl::string_view type = absl::StripSuffix(op.type, "_grad");
  const auto* kind =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const Kind& k) { return type == k.type; });
  PD_INVARIANT(kind != std::end(kKinds));
  return *kind;
}

Activation ReadActivation(const OpDesc& op, Function function) {
  Activation a;
  a.function = function;
  a.threshold = op.AttrOr("threshold", a.threshold);
  a.scale = op.AttrOr("scale", a.scale);
  a.offset = op.AttrOr("offset", a.offset);
  a.alpha = op.AttrOr("alpha", a.alpha);
  return a;
}

// Elements per thread at least: cheap functions wait for memory.
int64_t Grain(Function function) {
  return function >= Function::kSwish ? 4096 : 16384;
}

bool IsTaken(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat32 ||
         tensor.dtype() == DType::kBFloat16;
}

template <typename T>
Step ValueStep(const Activation& a, Tensor* x, Tensor* out) {
  return [x, out, a, n = x->physical_size()](const RunContext&) {
    const auto run = Values(T());
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
    const auto run = Grads(T());
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
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  const Activation a = ReadActivation(context->op(), kind.function);
  return x->dtype() == DType::kFloat32 ? ValueStep<float>(a, x, out)
                                       : ValueStep<BFloat16>(a, x, out);
}

absl::StatusOr<Step> BindActivationGrad(BindContext* context) {
  const Kind& kind = KindOf(context->op());
  Tensor* v = context->Input(kind.of_out ? "Out" : "X");
  Tensor* dout = context->Input("Out@GRAD");
  if (v == nullptr || !IsTaken(*v))
    return Unimplemented("it is for float32 and bfloat16");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", v->dtype(), v->size()));
  if (context->Input("Out@GRAD")->shape() != v->shape())
    return Unimplemented("the gradient has another shape than its operand");
  PD_ASSIGN_OR_RETURN(dout, context->In(dout, v->layout()));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), v->layout()));
  context->MayShare(dout, dx);
  const Activation a = ReadActivation(context->op(), kind.function);
  return v->dtype() == DType::kFloat32 ? GradStep<float>(a, v, dout, dx)
                                       : GradStep<BFloat16>(a, v, dout, dx);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
