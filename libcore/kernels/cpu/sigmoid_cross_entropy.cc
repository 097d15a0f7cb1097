// SPDX-License-Identifier: Apache-2.0
// sigmoid_cross_entropy_with_logits and its gradient in vectors, without
// weights. Formulas: libcore/ops/loss/sigmoid_cross_entropy_with_logits.cc.
#include <cmath>
#include <cstdint>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/sigmoid_cross_entropy.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/unary_loops.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {

// 0 where the label is the one that is ignored.
HWY_INLINE V UnlessIgnored(V label, float ignored, V value) {
  const V distance = hn::Abs(hn::Sub(label, Const(ignored)));
  return hn::IfThenZeroElse(hn::Lt(distance, Const(1e-5f)), value);
}

// Calls result(x, label, g) for whole vectors and the rest; g is `dout`, which
// may be null.
template <class Result>
HWY_INLINE void ForLogits(const float* x, const float* label, const float* dout,
                          float ignored, int64_t n, float* out,
                          const Result& result) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(n - i < lanes ? n - i : lanes));
    const V l = hn::MaskedLoad(mask, kTag, label + i);
    const V g = dout != nullptr ? hn::MaskedLoad(mask, kTag, dout + i) : Zero();
    const V y = result(hn::MaskedLoad(mask, kTag, x + i), l, g);
    hn::BlendedStore(UnlessIgnored(l, ignored, y), mask, kTag, out + i);
  }
}

void LogitLosses(const float* x, const float* label, const float*,
                 float ignored, int64_t n, float* out) {
  ForLogits(x, label, nullptr, ignored, n, out, [](V v, V l, V) HWY_ATTR {
    // The small part last: it would be lost beside x.
    return hn::Add(hn::NegMulAdd(v, l, hn::Max(v, Zero())),
                   SoftplusOf(hn::Neg(hn::Abs(v))));
  });
}

void LogitSlopes(const float* x, const float* label, const float* dout,
                 float ignored, int64_t n, float* dx) {
  ForLogits(x, label, dout, ignored, n, dx, [](V v, V l, V g) HWY_ATTR {
    return hn::Mul(g, hn::Sub(SigmoidOf(v), l));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(LogitLosses);
HWY_EXPORT(LogitSlopes);

namespace {

using LogitRows = void (*)(const float*, const float*, const float*, float,
                           int64_t, float*);

absl::StatusOr<Step> BindLogits(BindContext* context, LogitRows run,
                                Tensor* dout, Tensor* out) {
  Tensor* x = context->Input("X");
  Tensor* label = context->Input("Label");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (context->Input("pos_weight") != nullptr)
    return Unimplemented("it has no weights");
  if (context->Attr<bool>("normalize"))
    return Unimplemented("it does not normalize");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Label", DType::kFloat32, x->size()));
  if (dout != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Out@GRAD", DType::kFloat32, x->size()));
  const auto ignored =
      static_cast<float>(context->Attr<int32_t>("ignore_index"));
  context->MayShare(dout != nullptr ? dout : x, out);
  return Step([=, n = x->size()](const RunContext&) {
    const float *logits = x->data<float>(), *labels = label->data<float>();
    const float* g = dout != nullptr ? dout->data<float>() : nullptr;
    float* to = out->data<float>();
    ParallelFor(n, 4096, [&](int64_t begin, int64_t end) {
      run(logits + begin, labels + begin, g != nullptr ? g + begin : nullptr,
          ignored, end - begin, to + begin);
    });
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Step> BindSigmoidCrossEntropy(BindContext* context) {
  return BindLogits(context, HWY_DYNAMIC_DISPATCH(LogitLosses), nullptr,
                    context->Output("Out"));
}

absl::StatusOr<Step> BindSigmoidCrossEntropyGrad(BindContext* context) {
  return BindLogits(context, HWY_DYNAMIC_DISPATCH(LogitSlopes),
                    context->Input("Out@GRAD"), context->Output("X@GRAD"));
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
