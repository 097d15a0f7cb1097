// SPDX-License-Identifier: Apache-2.0
// Out = X where Condition, else Y: three tensors of one shape.
// X@GRAD = Out@GRAD where Condition, else 0; Y@GRAD the other way round.
#include <cstdint>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/op_formula.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferWhere(InferContext* context) {
  const TensorMeta& condition = context->Input("Condition");
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  const bool known =
      !IsDynamic(condition.shape) && !IsDynamic(x.shape) && !IsDynamic(y.shape);
  if (condition.dtype != DType::kBool || x.dtype != y.dtype ||
      (known && (x.shape != y.shape || x.shape != condition.shape)))
    return InvalidArgument(
        "Condition is %s %s, X %s %s, Y %s %s; expected bool, two of one "
        "dtype, and equal shapes",
        Name(condition.dtype), ToString(condition.shape), Name(x.dtype),
        ToString(x.shape), Name(y.dtype), ToString(y.shape));
  context->Share("X", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWhere(BindContext* context) {
  Tensor* condition = context->Input("Condition");
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  context->MayShare(y, out);
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      const bool* take = condition->data<bool>();
      const T *p = x->data<T>(), *q = y->data<T>();
      T* result = out->data<T>();
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = take[i] ? p[i] : q[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindWhereGrad(BindContext* context) {
  Tensor* condition = context->Input("Condition");
  for (const char* slot : {"X", "Y"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  return DispatchBytes(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = dout->size()](const RunContext&) {
      const bool* take = condition->data<bool>();
      const T* d = dout->data<T>();
      T* to_x = dx != nullptr ? dx->data<T>() : nullptr;
      T* to_y = dy != nullptr ? dy->data<T>() : nullptr;
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; to_x != nullptr && i < end; ++i)
          to_x[i] = take[i] ? d[i] : T{};
        for (int64_t i = begin; to_y != nullptr && i < end; ++i)
          to_y[i] = take[i] ? T{} : d[i];
      });
      return absl::OkStatus();
    });
  });
}

// The op again, zeros for a gradient that is not made.
absl::StatusOr<std::vector<OpDesc>> WhereSecond(const GradRequest& request) {
  const OpDesc& grad = request.op;
  const std::string dout = grad.In("Out@GRAD");
  std::vector<OpDesc> ops;
  if (!request.needs_grad(dout)) return ops;
  OpFormula f(grad);
  OpDesc op;
  op.type = "where";
  op.SetInput("Condition", {grad.In("Condition")});
  for (const char* slot : {"X", "Y"}) {
    const std::string cotangent = CotangentOf(grad, GradName(slot));
    op.SetInput(slot,
                {cotangent.empty() ? f.Like(grad.In(slot), 0) : cotangent});
  }
  op.SetOutput("Out", {GradName(dout)});
  f.Add(std::move(op));
  return f.Take();
}

}  // namespace

absl::Status RegisterWhere(OpRegistry* registry) {
  OpDef op("where");
  op.Input("Condition").Input("X").Input("Y").Output("Out");
  op.Infer(InferWhere).Reference(BindWhere);
  op.Grad(
      GradSpec{"where_grad", {"Condition", "X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("where_grad");
  grad.Input("Condition").Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).Grad(GradMaker(WhereSecond));
  grad.Reference(BindWhereGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
