// SPDX-License-Identifier: Apache-2.0
// Out = log(sum(exp(X))) over the axes `axis` (all of them with reduce_all, or
// when axis is empty); reduced axes are dropped, or stay as 1 with keepdim.
// X@GRAD = Out@GRAD exp(X - Out)
// The sum is kept in double relative to the largest element. Of nothing it is
// -inf.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/reduce_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<std::vector<bool>> LogsumexpReducedAxes(const OpDesc& op,
                                                       size_t rank) {
  const std::vector<int64_t> axes = IntsAttr(op, "axis");
  const bool all = axes.empty() || op.Attr<bool>("reduce_all");
  std::vector<bool> reduced(rank, all);
  if (all) return reduced;
  for (int64_t a : axes) {
    if (rank == 0 && (a == 0 || a == -1)) continue;
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

absl::Status InferLogsumexpForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      LogsumexpReducedAxes(context->op(), x.shape.size()));
  Shape shape;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i])
      shape.push_back(x.shape[i]);
    else if (context->Attr<bool>("keepdim"))
      shape.push_back(1);
  }
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

// sum * exp(max)
struct LogsumexpScaled {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0.0;
};

template <typename T>
struct Reducer {
  using Acc = LogsumexpScaled;
  LogsumexpScaled Identity() const { return {}; }
  LogsumexpScaled Load(T v) const { return {static_cast<double>(v), 1.0}; }
  LogsumexpScaled Combine(const LogsumexpScaled& a,
                          const LogsumexpScaled& b) const {
    if (a.max == b.max) return {a.max, a.sum + b.sum};
    if (a.max > b.max) return {a.max, a.sum + b.sum * std::exp(b.max - a.max)};
    return {b.max, b.sum + a.sum * std::exp(a.max - b.max)};
  }
};

absl::StatusOr<Step> BindLogsumexpForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      LogsumexpReducedAxes(context->op(), x->rank()));
  const ReducePlan plan = MakeReducePlan(x->shape(), reduced);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* result = out->data<T>();
      Reduce(plan, x->data<T>(), Reducer<T>(),
             [&](int64_t i, const LogsumexpScaled& total) {
               result[i] = static_cast<T>(std::log(total.sum) + total.max);
             });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLogsumexpGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      LogsumexpReducedAxes(context->op(), x->rank()));
  Shape kept;
  for (size_t i = 0; i < reduced.size(); ++i)
    kept.push_back(reduced[i] ? 1 : x->dim(i));
  for (const char* slot : {"Out", "Out@GRAD"})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, x->dtype(), NumElements(kept)));
  const auto strides = RowMajorStrides(x->shape());
  const auto out_strides = RowMajorStrides(kept);
  StridedLoop<2> loop;
  for (size_t i = 0; i < reduced.size(); ++i)
    loop.Add(x->dim(i), {strides[i], reduced[i] ? 0 : out_strides[i]});
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t stride = loop.row_strides()[1];
      ParallelFor(loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
        loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
          for (int64_t j = 0; j < n; ++j) {
            const int64_t from = at[1] + j * stride;
            dx->data<T>()[at[0] + j] =
                dout->data<T>()[from] *
                std::exp(x->data<T>()[at[0] + j] - out->data<T>()[from]);
          }
        });
      });
      return absl::OkStatus();
    });
  });
}

void AddLogsumexpAttrs(OpDef* op) {
  op->Attr("axis", std::vector<int32_t>{0}).Attr("keepdim", false);
  op->Attr("reduce_all", false);
}

}  // namespace

absl::Status RegisterLogsumexp(OpRegistry* registry) {
  OpDef op("logsumexp");
  op.Input("X")
      .Output("Out")
      .Infer(InferLogsumexpForward)
      .Reference(BindLogsumexpForward);
  AddLogsumexpAttrs(&op);
  op.Grad(GradSpec{"logsumexp_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("logsumexp_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  AddLogsumexpAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLogsumexpGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
