// SPDX-License-Identifier: Apache-2.0
// Out = scale * X + bias, or scale * (X + bias) unless bias_after_scale. The
// scale is the attribute, or the element of ScaleTensor. Integers are scaled
// by the whole part of it.
// X@GRAD = scale * Out@GRAD: a scale op again.
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/number_of.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindScale(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* by = context->Input("ScaleTensor");
  const float scale = context->Attr<float>("scale");
  const float bias = context->Attr<float>("bias");
  const bool after = context->Attr<bool>("bias_after_scale");
  if (by != nullptr) PD_RETURN_IF_ERROR(CheckNumber(*by, "ScaleTensor"));
  if (by == nullptr && scale == 1.0f && bias == 0.0f) {
    return AliasOrCopy(context, x, out);
  }
  const bool half =
      x->dtype() == DType::kFloat16 || x->dtype() == DType::kBFloat16;
  if (half && context->op().AttrOr("use_mkldnn", false))
    return Unimplemented("it truncates halves; use_mkldnn is to round them");
  context->MayShare(x, out);
  return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                       uint8_t, bool, Float16, BFloat16, std::complex<float>,
                       std::complex<double>>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        // A bool is scaled as a float; the result is true where it is not 0.
        using C =
            std::conditional_t<std::is_same_v<T, bool>, float, Computed<T>>;
        return Step([x, out, by, scale, after, b = static_cast<C>(bias),
                     n = x->size()](const RunContext&) {
          const C s =
              static_cast<C>(by != nullptr ? NumberOf<double>(*by) : scale);
          // scale * (X + bias) differs from scale * X + scale * bias by a
          // rounding, so it is computed as it is written.
          const C before = after ? C(0) : b, behind = after ? b : C(0);
          const T* in = x->data<T>();
          T* result = out->data<T>();
          ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i)
              result[i] = Stored<T>((C(in[i]) + before) * s + behind);
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<std::vector<OpDesc>> ScaleGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {GradName(request.op.Out("Out"))});
  if (!request.op.Input("ScaleTensor").empty())
    op.SetInput("ScaleTensor", request.op.Input("ScaleTensor"));
  op.SetOutput("Out", {GradName(request.op.In("X"))});
  op.attrs["scale"] = request.op.AttrOr("scale", 1.0f);
  op.attrs["bias"] = 0.0f;
  op.attrs["bias_after_scale"] = true;
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterScale(OpRegistry* registry) {
  OpDef op("scale");
  op.Input("X").OptionalInput("ScaleTensor").Output("Out");
  op.Attr("scale", 1.0f).Attr("bias", 0.0f).Attr("bias_after_scale", true);
  op.With(Trait::kShapeArithmetic)
      .Infer(InferUnary)
      .Grad(GradMaker(ScaleGrad))
      .Reference(BindKeepingRows<BindScale>);
  return registry->Add(std::move(op));
}

}  // namespace pd
