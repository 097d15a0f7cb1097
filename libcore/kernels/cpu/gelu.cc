// SPDX-License-Identifier: Apache-2.0
// gelu and its gradient, exact and by tanh, in vectors.
//   exact: x Phi(x), Phi(x) = erfc(-x / sqrt(2)) / 2; the gradient is
//     Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)
//   approximate: x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)
#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/gelu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "libcore/kernels/cpu/erfc.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<decltype(kTag)>;

HWY_INLINE V Const(float value) { return hn::Set(kTag, value); }

// Phi(x), and exp(-x^2 / 2) where `density` is not null.
HWY_INLINE V NormalCdf(V x, V* density) {
  // Beyond 20 all is 0 or 1; infinity would make NaN of the differences.
  const V z =
      hn::Min(hn::Mul(hn::Abs(x), Const(0.70710678118654752f)), Const(20.0f));
  const V tail = hn::Mul(ErfcOf(z), Const(0.5f));
  if (density != nullptr) *density = ExpOfMinusSquare(z, hn::Zero(kTag));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(kTag)), tail,
                        hn::Sub(Const(1.0f), tail));
}

// tanh(u) of the approximation.
HWY_INLINE V TanhOf(V x) {
  const V inner = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), Const(0.044715f), x);
  return hn::Tanh(kTag, hn::Mul(inner, Const(0.79788456080286536f)));
}

struct Exact {
  HWY_INLINE V Value(V x) const { return hn::Mul(x, NormalCdf(x, nullptr)); }
  HWY_INLINE V Slope(V x) const {
    V density;
    const V cdf = NormalCdf(x, &density);
    return hn::MulAdd(hn::Mul(x, density), Const(0.39894228040143268f), cdf);
  }
};

struct ByTanh {
  HWY_INLINE V Value(V x) const {
    return hn::Mul(hn::Mul(x, Const(0.5f)), hn::Add(TanhOf(x), Const(1.0f)));
  }
  HWY_INLINE V Slope(V x) const {
    const V t = TanhOf(x);
    const V du =
        hn::Mul(hn::MulAdd(hn::Mul(x, x), Const(3 * 0.044715f), Const(1.0f)),
                Const(0.79788456080286536f));
    const V sech2 = hn::NegMulAdd(t, t, Const(1.0f));
    return hn::Mul(Const(0.5f),
                   hn::MulAdd(hn::Mul(x, sech2), du, hn::Add(t, Const(1.0f))));
  }
};

// NaN stays NaN, whatever the polynomials make of it.
HWY_INLINE V KeepNan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

template <class F>
void ValuesOf(F f, const float* x, int64_t n, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    const V v = hn::MaskedLoad(mask, kTag, x + i);
    hn::BlendedStore(KeepNan(v, f.Value(v)), mask, kTag, out + i);
  }
}

template <class F>
void GradsOf(F f, const float* x, const float* dout, int64_t n, float* dx) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    const V v = hn::MaskedLoad(mask, kTag, x + i);
    const V g = hn::MaskedLoad(mask, kTag, dout + i);
    hn::BlendedStore(hn::Mul(KeepNan(v, f.Slope(v)), g), mask, kTag, dx + i);
  }
}

void GeluValues(bool approximate, const float* x, int64_t n, float* out) {
  approximate ? ValuesOf(ByTanh(), x, n, out) : ValuesOf(Exact(), x, n, out);
}

void GeluGrads(bool approximate, const float* x, const float* dout, int64_t n,
               float* dx) {
  approximate ? GradsOf(ByTanh(), x, dout, n, dx)
              : GradsOf(Exact(), x, dout, n, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(GeluValues);
HWY_EXPORT(GeluGrads);

namespace {

constexpr int64_t kGrain = 2048;  // elements per thread at least

}  // namespace

absl::StatusOr<Step> BindGelu(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  context->MayShare(x, out);
  return Step([x, out, approximate = context->Attr<bool>("approximate")](
                  const RunContext&) {
    const auto run = HWY_DYNAMIC_DISPATCH(GeluValues);
    const float* in = x->data<float>();
    float* result = out->data<float>();
    ParallelFor(x->size(), kGrain, [&](int64_t begin, int64_t end) {
      run(approximate, in + begin, end - begin, result + begin);
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindGeluGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input("Out@GRAD"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), nullptr));
  context->MayShare(dout, dx);
  return Step([x, dout, dx, approximate = context->Attr<bool>("approximate")](
                  const RunContext&) {
    const auto run = HWY_DYNAMIC_DISPATCH(GeluGrads);
    const float* in = x->data<float>();
    const float* g = dout->data<float>();
    float* result = dx->data<float>();
    ParallelFor(x->size(), kGrain, [&](int64_t begin, int64_t end) {
      run(approximate, in + begin, g + begin, end - begin, result + begin);
    });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
