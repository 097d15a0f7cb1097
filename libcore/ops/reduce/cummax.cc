// SPDX-License-Identifier: Apache-2.0
// cummax, cummin: out[i] = the largest (smallest) of x[0] ... x[i] along
// `axis`, indices[i] = where it lies: the last place among equal ones, and of
// the last NaN once there is one.
// x@GRAD[j] = the sum of out@GRAD[i] over the i with indices[i] = j
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferCummaxForward(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const int32_t axis = context->Attr<int32_t>("axis");
  if (!x.shape.empty() || axis < -1 || axis > 0)
    PD_RETURN_IF_ERROR(NormalizeAxis(axis, x.shape.size()).status());
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return InvalidArgument("attr 'dtype' is %d; expected int32 or int64", code);
  context->Share("x", "out");
  context->SetOutput("indices", x.shape, *dtype);
  return absl::OkStatus();
}

template <typename T, typename Index, bool kMax>
void Scan(const AxisView& view, const T* x, T* out, Index* indices) {
  ForEachLine(view, [&](int64_t, int64_t start) {
    T best = x[start];
    Index place = 0;
    for (int64_t i = 0; i < view.n; ++i) {
      const int64_t at = start + i * view.inner;
      const T v = x[at];
      if (v != v || (best == best && (kMax ? v >= best : v <= best))) {
        best = v;
        place = static_cast<Index>(i);
      }
      out[at] = best;
      indices[at] = place;
    }
  });
}

template <bool kMax>
absl::StatusOr<Step> BindCummaxForward(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  Tensor* indices = context->Output("indices");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  if (indices == nullptr || out == nullptr)
    return InvalidArgument("an output is missing");
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          if (indices->dtype() == DType::kInt32)
            Scan<T, int32_t, kMax>(view, x->data<T>(), out->data<T>(),
                                   indices->data<int32_t>());
          else
            Scan<T, int64_t, kMax>(view, x->data<T>(), out->data<T>(),
                                   indices->data<int64_t>());
          return absl::OkStatus();
        });
      });
}

template <typename T, typename Index>
absl::Status Scatter(const AxisView& view, const Index* indices, const T* dout,
                     T* dx, int64_t size) {
  std::fill_n(dx, size, T(0));
  for (int64_t line = 0; line < view.lines(); ++line) {
    const int64_t start = view.Start(line);
    for (int64_t i = 0; i < view.n; ++i) {
      const int64_t at = start + i * view.inner;
      const int64_t from = indices[at];
      if (from < 0 || from >= view.n)
        return InvalidArgument("index %d of element %d is not in [0, %d)", from,
                               at, view.n);
      dx[start + from * view.inner] += dout[at];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCummaxGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* indices = context->Input("indices");
  Tensor* dout = context->Input("out@GRAD");
  Tensor* dx = context->Output("x@GRAD");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "out@GRAD", x->dtype(), x->size()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "indices", indices->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return DispatchTypes<int32_t, int64_t>(
            indices->dtype(), [&](auto index) -> absl::StatusOr<Step> {
              using Index = typename decltype(index)::type;
              return Step([=](const RunContext&) {
                return Scatter(view, indices->data<Index>(), dout->data<T>(),
                               dx->data<T>(), dx->size());
              });
            });
      });
}

void AddCummaxAttrs(OpDef* op) {
  op->Attr("axis", int32_t{-1}).Attr("dtype", int32_t{3});
}

template <bool kMax>
absl::Status AddCummaxOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("x").Output("out").Output("indices");
  AddCummaxAttrs(&op);
  op.Infer(InferCummaxForward).Reference(BindCummaxForward<kMax>);
  op.Grad(GradSpec{type + "_grad", {"x"}, {"indices"}, {"out"}, {"x"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("x").Input("indices").Input("out@GRAD").Output("x@GRAD");
  AddCummaxAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCummaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterCummax(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddCummaxOp<true>(registry, "cummax"));
  return AddCummaxOp<false>(registry, "cummin");
}

}  // namespace pd
