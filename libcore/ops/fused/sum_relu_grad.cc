// SPDX-License-Identifier: Apache-2.0
// sum_relu_grad: the gradient of a ReLU whose result two ops read.
//   X@GRAD = X[0] + X[1] where Out > 0, else 0
// Passes put it in the place of the `sum` of the two gradients X and of the
// relu_grad that alone reads it. The sum is rounded once.
#include <cstdint>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindSumReluGrad(BindContext* context) {
  Tensor *a = context->Input("X", 0), *b = context->Input("X", 1);
  Tensor* out = context->Input("Out");
  Tensor* dx = context->Output("X@GRAD");
  for (const Tensor* x : {a, b})
    if (x->dtype() != out->dtype() || x->shape() != out->shape())
      return InvalidArgument("'X' is %s %s; 'Out' is %s %s", Name(x->dtype()),
                             ToString(x->shape()), Name(out->dtype()),
                             ToString(out->shape()));
  context->MayShare(a, dx);
  context->MayShare(b, dx);
  return DispatchTypes<float, double, Float16, BFloat16>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([a, b, out, dx](const RunContext&) {
          ParallelFor(dx->size(), kElementGrain, [&](int64_t i, int64_t end) {
            for (; i < end; ++i)
              dx->data<T>()[i] =
                  out->data<T>()[i] > T(0)
                      ? Stored<T>(a->data<T>()[i] + b->data<T>()[i])
                      : T(0);
          });
          return absl::OkStatus();
        });
      });
}

absl::Status InferSumReluGrad(InferContext* context) {
  if (context->InputCount("X") != 2)
    return InvalidArgument("%d X; expected 2", context->InputCount("X"));
  context->Share("Out", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSumReluGrad(OpRegistry* registry) {
  OpDef op("sum_relu_grad");
  op.Inputs("X").Input("Out").Output("X@GRAD");
  op.Infer(InferSumReluGrad).NoGrad().Reference(BindSumReluGrad);
  return registry->Add(std::move(op));
}

}  // namespace pd
