// SPDX-License-Identifier: Apache-2.0
// Functions of two float32 in vectors: angles and powers, with their gradients.
// Powers are computed in double, so that they round as exact ones do; where a
// number is 0, infinite or NaN the C library decides. Formulas:
// libcore/ops/elementwise/atan2.cc, elementwise.cc, activation/pow.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/pairs.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
using F = hn::Vec<decltype(kFloats)>;
// As many floats as there are doubles in a vector.
const hn::ScalableTag<double> kDoubles;
using D = hn::Vec<decltype(kDoubles)>;
const hn::Rebind<float, decltype(kDoubles)> kHalf;
using H = hn::Vec<decltype(kHalf)>;

// The angle of the point (x, y).
HWY_INLINE F AngleOf(F y, F x) {
  const F up = hn::Abs(y), along = hn::Abs(x);
  F ratio = hn::Div(up, along);
  ratio = hn::IfThenElse(hn::Eq(up, along), hn::Set(kFloats, 1.0f), ratio);
  ratio = hn::IfThenZeroElse(hn::Eq(up, hn::Zero(kFloats)), ratio);
  const F angle = hn::Atan(kFloats, ratio);
  const F left = hn::Add(hn::Sub(hn::Set(kFloats, 3.14159274f), angle),
                         hn::Set(kFloats, -8.74227766e-8f));
  const F turned = hn::CopySign(hn::IfNegativeThenElse(x, left, angle), y);
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(nan, hn::Add(x, y), turned);
}

// Operands are x, y and the gradient of the result, which may be null.
struct PairRows {
  const float *x, *y, *dout;
};

template <class Result>
HWY_INLINE void ForFloats(const PairRows& in, int64_t n, float* out,
                          const Result& result) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kFloats));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kFloats, static_cast<size_t>(std::min(lanes, n - i)));
    const F x = hn::MaskedLoad(mask, kFloats, in.x + i);
    const F y = hn::MaskedLoad(mask, kFloats, in.y + i);
    const F d = in.dout != nullptr ? hn::MaskedLoad(mask, kFloats, in.dout + i)
                                   : hn::Zero(kFloats);
    hn::BlendedStore(result(x, y, d), mask, kFloats, out + i);
  }
}

void Angles(const float* x, const float* y, const float* dout, int64_t n,
            float* out) {
  ForFloats({x, y, dout}, n, out,
            [](F y, F x, F) HWY_ATTR { return AngleOf(y, x); });
}
void AngleGrads(const float* x, const float* y, const float* dout, int64_t n,
                float* to_y) {
  ForFloats({x, y, dout}, n, to_y, [](F y, F x, F d) HWY_ATTR {
    return hn::Div(hn::Mul(d, x), hn::MulAdd(y, y, hn::Mul(x, x)));
  });
}
void AngleGradsOfX(const float* x, const float* y, const float* dout, int64_t n,
                   float* to_x) {
  ForFloats({x, y, dout}, n, to_x, [](F y, F x, F d) HWY_ATTR {
    return hn::Div(hn::Mul(d, hn::Neg(y)), hn::MulAdd(y, y, hn::Mul(x, x)));
  });
}

// x^y of numbers that are finite, x not 0.
HWY_INLINE D PlainPower(D x, D y) {
  const D most = hn::Set(kDoubles, 700.0);  // beyond float32's range
  const D log = hn::Mul(y, hn::Log(kDoubles, hn::Abs(x)));
  const D size = hn::Exp(kDoubles, hn::Max(hn::Min(log, most), hn::Neg(most)));
  const D half = hn::Mul(y, hn::Set(kDoubles, 0.5));
  const auto whole = hn::Eq(hn::Round(y), y);
  const auto even = hn::Eq(hn::Round(half), half);
  const D below = hn::IfThenElse(
      whole, hn::IfThenElse(even, size, hn::Neg(size)), hn::NaN(kDoubles));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(kDoubles)), below, size);
}
HWY_INLINE H PowerOf(H x, H y) {
  const H infinity = hn::Set(kHalf, HUGE_VALF), size = hn::Abs(x);
  const auto plain =
      hn::And(hn::And(hn::Gt(size, hn::Zero(kHalf)), hn::Lt(size, infinity)),
              hn::Lt(hn::Abs(y), infinity));
  // A number's power does not depend on its neighbours in the vector.
  const H fast = hn::DemoteTo(kHalf, PlainPower(hn::PromoteTo(kDoubles, x),
                                                hn::PromoteTo(kDoubles, y)));
  if (HWY_LIKELY(hn::AllTrue(kHalf, plain))) return fast;
  HWY_ALIGN float base[HWY_MAX_BYTES / sizeof(float)];
  HWY_ALIGN float by[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, kHalf, base);
  hn::Store(y, kHalf, by);
  for (size_t i = 0; i < hn::Lanes(kHalf); ++i)
    base[i] = std::pow(base[i], by[i]);
  return hn::IfThenElse(plain, fast, hn::Load(kHalf, base));
}
HWY_INLINE H LogOf(H x) {
  const auto plain =
      hn::And(hn::Gt(x, hn::Zero(kHalf)), hn::Lt(x, hn::Set(kHalf, HUGE_VALF)));
  const H fast =
      hn::DemoteTo(kHalf, hn::Log(kDoubles, hn::PromoteTo(kDoubles, x)));
  if (HWY_LIKELY(hn::AllTrue(kHalf, plain))) return fast;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, kHalf, lanes);
  for (size_t i = 0; i < hn::Lanes(kHalf); ++i) lanes[i] = std::log(lanes[i]);
  return hn::IfThenElse(plain, fast, hn::Load(kHalf, lanes));
}

// Where `by` is given, y is this number for all.
template <class Result>
HWY_INLINE void ForHalves(const PairRows& in, const float* by, int64_t n,
                          float* out, const Result& result) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kHalf));
  const H one = hn::Set(kHalf, 1.0f);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kHalf, static_cast<size_t>(std::min(lanes, n - i)));
    // Ones behind the end: they are plain.
    const H x =
        hn::IfThenElse(mask, hn::MaskedLoad(mask, kHalf, in.x + i), one);
    const H y = by != nullptr ? hn::Set(kHalf, *by)
                              : hn::MaskedLoad(mask, kHalf, in.y + i);
    const H d =
        in.dout != nullptr ? hn::MaskedLoad(mask, kHalf, in.dout + i) : one;
    hn::BlendedStore(result(x, y, d), mask, kHalf, out + i);
  }
}

void Powers(const float* x, const float* y, const float* dout, int64_t n,
            float* out) {
  ForHalves({x, y, dout}, nullptr, n, out,
            [](H x, H y, H) HWY_ATTR { return PowerOf(x, y); });
}
void PowerGrads(const float* x, const float* y, const float* dout, int64_t n,
                float* to_x) {
  ForHalves({x, y, dout}, nullptr, n, to_x, [](H x, H y, H d) HWY_ATTR {
    const H less = hn::Sub(y, hn::Set(kHalf, 1.0f));
    return hn::Mul(hn::Mul(d, y), PowerOf(x, less));
  });
}
void PowerGradsOfY(const float* x, const float* y, const float* dout, int64_t n,
                   float* to_y) {
  ForHalves({x, y, dout}, nullptr, n, to_y, [](H x, H y, H d) HWY_ATTR {
    return hn::Mul(hn::Mul(d, LogOf(x)), PowerOf(x, y));
  });
}
// out = dout * scale * x^by; dout may be null.
void PowersOf(const float* x, const float* dout, float by, float scale,
              int64_t n, float* out) {
  const H factor = hn::Set(kHalf, scale);
  ForHalves({x, nullptr, dout}, &by, n, out, [factor](H x, H y, H d) HWY_ATTR {
    return hn::Mul(hn::Mul(d, factor), PowerOf(x, y));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(Angles);
HWY_EXPORT(AngleGrads);
HWY_EXPORT(AngleGradsOfX);
HWY_EXPORT(Powers);
HWY_EXPORT(PowerGrads);
HWY_EXPORT(PowerGradsOfY);
HWY_EXPORT(PowersOf);

namespace {

constexpr int64_t kPairGrain = 2048;  // elements of a thread at least

using PairFn = void (*)(const float* x, const float* y, const float* dout,
                        int64_t n, float* out);

const float* FloatsFrom(Tensor* t, int64_t begin) {
  return t != nullptr ? t->data<float>() + begin : nullptr;
}

// out = run(x, y, dout) of tensors of one shape; out may be null.
Step PairStep(PairFn run, Tensor* x, Tensor* y, Tensor* dout, Tensor* out) {
  return [=, n = x->size()](const RunContext&) {
    if (out == nullptr) return absl::OkStatus();
    ParallelFor(n, kPairGrain, [&](int64_t begin, int64_t end) {
      run(FloatsFrom(x, begin), FloatsFrom(y, begin), FloatsFrom(dout, begin),
          end - begin, out->data<float>() + begin);
    });
    return absl::OkStatus();
  };
}

absl::Status ExpectPair(const Tensor& x, const Tensor& y) {
  if (x.dtype() != DType::kFloat32 || y.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x.shape() != y.shape())
    return Unimplemented("the operands have two shapes");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPairGrads(BindContext* context, const char* x_slot,
                                   const char* y_slot, PairFn of_x,
                                   PairFn of_y) {
  Tensor* x = context->Input(x_slot);
  Tensor* y = context->Input(y_slot);
  Tensor* dout = context->Input("Out@GRAD");
  PD_RETURN_IF_ERROR(ExpectPair(*x, *y));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  const Step first =
      PairStep(of_x, x, y, dout, context->Output(GradName(x_slot)));
  const Step second =
      PairStep(of_y, x, y, dout, context->Output(GradName(y_slot)));
  return Step([first, second](const RunContext& run) {
    PD_RETURN_IF_ERROR(first(run));
    return second(run);
  });
}

// The powers that the reference has as products.
bool IsProduct(float by) { return by == 0 || by == 1 || by == 2; }

absl::StatusOr<float> FixedFactor(const BindContext& context) {
  if (context.Input("X")->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (context.Input("FactorTensor") != nullptr)
    return Unimplemented("the factor is a tensor");
  return context.Attr<float>("factor");
}

Step FixedPowerStep(Tensor* x, Tensor* dout, float by, float scale,
                    Tensor* out) {
  return [=, n = x->size()](const RunContext&) {
    ParallelFor(n, kPairGrain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(PowersOf)
      (FloatsFrom(x, begin), FloatsFrom(dout, begin), by, scale, end - begin,
       out->data<float>() + begin);
    });
    return absl::OkStatus();
  };
}

}  // namespace

absl::StatusOr<Step> BindAtan2(BindContext* context) {
  Tensor* y = context->Input("X1");
  Tensor* x = context->Input("X2");
  PD_RETURN_IF_ERROR(ExpectPair(*y, *x));
  return PairStep(HWY_DYNAMIC_DISPATCH(Angles), y, x, nullptr,
                  context->Output("Out"));
}

absl::StatusOr<Step> BindAtan2Grad(BindContext* context) {
  return BindPairGrads(context, "X1", "X2", HWY_DYNAMIC_DISPATCH(AngleGrads),
                       HWY_DYNAMIC_DISPATCH(AngleGradsOfX));
}

absl::StatusOr<Step> BindElementwisePow(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectPair(*x, *y));
  for (Tensor* operand : {x, y}) context->MayShare(operand, out);
  return PairStep(HWY_DYNAMIC_DISPATCH(Powers), x, y, nullptr, out);
}

absl::StatusOr<Step> BindElementwisePowGrad(BindContext* context) {
  return BindPairGrads(context, "X", "Y", HWY_DYNAMIC_DISPATCH(PowerGrads),
                       HWY_DYNAMIC_DISPATCH(PowerGradsOfY));
}

absl::StatusOr<Step> BindPow(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const float by, FixedFactor(*context));
  if (IsProduct(by)) return Unimplemented("products do for this power");
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return FixedPowerStep(x, nullptr, by, 1, out);
}

absl::StatusOr<Step> BindPowGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const float factor, FixedFactor(*context));
  if (IsProduct(factor - 1)) return Unimplemented("products do for this power");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->MayShare(dout, dx);
  return FixedPowerStep(x, dout, factor - 1, factor, dx);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
