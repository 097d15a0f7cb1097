// SPDX-License-Identifier: Apache-2.0
// Out = X + step, usually over X itself: a counter. X@GRAD = Out@GRAD.
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindIncrement(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const float by = context->Attr<float>("step");
  if (x->size() != 1)
    return InvalidArgument("X has shape %s; expected one element",
                           ToString(x->shape()));
  context->MayShare(x, out);
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out, step = static_cast<T>(by)](const RunContext&) {
          out->data<T>()[0] = x->data<T>()[0] + step;
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<std::vector<OpDesc>> IncrementGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {GradName(request.op.Out("Out"))});
  op.SetOutput("Out", {GradName(request.op.In("X"))});
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterIncrement(OpRegistry* registry) {
  OpDef op("increment");
  op.Input("X").Output("Out").Attr("step", 1.0f);
  op.Infer(InferUnary).Grad(GradMaker(IncrementGrad));
  op.Reference(BindIncrement);
  return registry->Add(std::move(op));
}

}  // namespace pd
