// SPDX-License-Identifier: Apache-2.0
// cast between float32 and halves in vectors, in whatever layout the elements
// lie. Only what rounds to nearest: PaddlePaddle's plain cast truncates.
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/cast.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/half_vectors.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {

template <typename From, typename To>
void Convert(const From* from, int64_t n, To* to) {
  const int64_t lanes = static_cast<int64_t>(
      hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreNarrow(LoadWide(from + i), to + i);
  for (; i < n; ++i) to[i] = To(static_cast<float>(from[i]));
}

void CastBrainToFloat(const BFloat16* from, int64_t n, float* to) {
  Convert(from, n, to);
}
void CastFloatToBrain(const float* from, int64_t n, BFloat16* to) {
  Convert(from, n, to);
}
void CastHalfToFloat(const Float16* from, int64_t n, float* to) {
  Convert(from, n, to);
}
void CastFloatToHalf(const float* from, int64_t n, Float16* to) {
  Convert(from, n, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {
namespace {

HWY_EXPORT(CastBrainToFloat);
HWY_EXPORT(CastFloatToBrain);
HWY_EXPORT(CastHalfToFloat);
HWY_EXPORT(CastFloatToHalf);

template <typename From, typename To>
Step CastStep(Tensor* x, Tensor* out,
              void (*convert)(const From*, int64_t, To*)) {
  return [=](const RunContext&) {
    constexpr int64_t kGrain = 32768;  // elements per thread at least
    const From* from = x->data<From>();
    To* to = out->data<To>();
    ParallelFor(x->physical_size(), kGrain, [&](int64_t begin, int64_t end) {
      convert(from + begin, end - begin, to + begin);
    });
    return absl::OkStatus();
  };
}

}  // namespace

absl::StatusOr<Step> BindCast(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const DType from = x->dtype(), to = out->dtype();
  const bool widens = to == DType::kFloat32 &&
                      (from == DType::kBFloat16 || from == DType::kFloat16);
  const bool narrows = from == DType::kFloat32 &&
                       (to == DType::kBFloat16 || to == DType::kFloat16);
  if (!widens && !narrows)
    return Unimplemented("it is between float32 and halves");
  if (narrows && !context->op().Attr<bool>("use_mkldnn"))
    return Unimplemented("it rounds to nearest, as use_mkldnn asks for");
  PD_ASSIGN_OR_RETURN(out, context->Out(out, x->layout()));
  if (from == DType::kBFloat16)
    return CastStep<BFloat16, float>(x, out,
                                     HWY_DYNAMIC_DISPATCH(CastBrainToFloat));
  if (from == DType::kFloat16)
    return CastStep<Float16, float>(x, out,
                                    HWY_DYNAMIC_DISPATCH(CastHalfToFloat));
  if (to == DType::kBFloat16)
    return CastStep<float, BFloat16>(x, out,
                                     HWY_DYNAMIC_DISPATCH(CastFloatToBrain));
  return CastStep<float, Float16>(x, out,
                                  HWY_DYNAMIC_DISPATCH(CastFloatToHalf));
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
