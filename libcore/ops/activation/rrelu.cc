// SPDX-License-Identifier: Apache-2.0
// Out = X Noise. Noise is 1 where X >= 0; elsewhere it is drawn from
// [lower, upper), or is their mean when `is_test`.
// X@GRAD = Out@GRAD Noise
#include <cstdint>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferRreluForward(InferContext* context) {
  const float lower = context->Attr<float>("lower");
  const float upper = context->Attr<float>("upper");
  if (!(lower >= 0.0f && lower <= upper && upper <= 1.0f))
    return InvalidArgument(
        "attr 'lower' is %g, 'upper' is %g; expected 0 <= lower <= upper <= 1",
        lower, upper);
  context->Share("X", "Noise");
  return InferUnary(context);
}

absl::StatusOr<Step> BindRreluForward(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* out = upcaster.Out(context->Output("Out"));
  Tensor* noise = upcaster.Out(context->Output("Noise"));
  const float lower = context->Attr<float>("lower");
  const float upper = context->Attr<float>("upper");
  const bool test = context->Attr<bool>("is_test");
  return upcaster.Wrap(
      DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step(
            [=, source = RandomSourceOf(*context)](const RunContext& run) {
              const Philox numbers = source.Numbers(run);
              const T middle = (T(lower) + T(upper)) / T(2);
              for (int64_t i = 0, n = x->size(); i < n; ++i) {
                const T v = x->data<T>()[i];
                const T drawn =
                    test ? middle
                         : static_cast<T>(lower + (upper - lower) *
                                                      OpenUniform(numbers, i));
                const T slope = v < T(0) ? drawn : T(1);
                out->data<T>()[i] = v * slope;
                if (noise != nullptr) noise->data<T>()[i] = slope;
              }
              return absl::OkStatus();
            });
      }));
}

absl::StatusOr<Step> BindRreluGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  context->NoBuffer(x);
  for (const char* slot : {"Noise", "Out@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), x->size()));
  Upcaster upcaster(context);
  Tensor* noise = upcaster.In(context->Input("Noise"));
  Tensor* dout = upcaster.In(context->Input("Out@GRAD"));
  Tensor* dx = upcaster.Out(context->Output("X@GRAD"));
  return upcaster.Wrap(
      DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([noise, dout, dx](const RunContext&) {
          for (int64_t i = 0, n = dx->size(); i < n; ++i)
            dx->data<T>()[i] = dout->data<T>()[i] * noise->data<T>()[i];
          return absl::OkStatus();
        });
      }));
}

}  // namespace

absl::Status RegisterRrelu(OpRegistry* registry) {
  OpDef op("rrelu"), grad("rrelu_grad");
  op.Input("X").Output("Out").IntermediateOutput("Noise");
  op.Attr("is_test", false).Attr("lower", 0.125f).Attr("upper", 1.0f / 3.0f);
  op.Infer(InferRreluForward).Reference(BindRreluForward);
  op.Grad(GradSpec{"rrelu_grad", {"X"}, {"Noise"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("X").Input("Noise").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRreluGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
