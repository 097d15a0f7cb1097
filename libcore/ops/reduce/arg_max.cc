// SPDX-License-Identifier: Apache-2.0
// arg_max, arg_min: where the largest (smallest) element along `axis` is, or
// of all elements with `flatten`, as `dtype` (int64 unless int32 is asked
// for). Of equal ones it is the first; NaN wins. No gradient.
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferArg(InferContext* context) {
  Shape shape = context->Input("X").shape;
  const bool keep = context->Attr<bool>("keepdims");
  if (context->Attr<bool>("flatten") || shape.empty()) {
    shape.assign(keep ? shape.size() : 0, 1);
  } else {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context->Attr<int64_t>("axis"), shape.size()));
    if (keep)
      shape[static_cast<size_t>(axis)] = 1;
    else
      shape.erase(shape.begin() + axis);
  }
  const int32_t code = context->Attr<int32_t>("dtype");
  const bool narrow = code == static_cast<int32_t>(DType::kInt32);
  context->SetOutput("Out", std::move(shape),
                     narrow ? DType::kInt32 : DType::kInt64);
  return absl::OkStatus();
}

template <bool kMaximum>
absl::StatusOr<Step> BindArg(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  int64_t n = x->size(), inner = 1;
  if (!context->Attr<bool>("flatten") && x->rank() > 0) {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context->Attr<int64_t>("axis"), x->rank()));
    n = x->dim(static_cast<size_t>(axis));
    inner = NumElements(x->shape(), static_cast<size_t>(axis) + 1, x->rank());
  }
  if (n == 0 && out->size() > 0)
    return InvalidArgument("X has shape %s: there is no extremum of nothing",
                           ToString(x->shape()));
  return DispatchNumeric(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, n, inner](const RunContext&) {
      const bool narrow = out->dtype() == DType::kInt32;
      ParallelFor(out->size(), 16384 / n + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x->data<T>() + row / inner * n * inner + row % inner;
          int64_t best = 0;
          for (int64_t i = 1; i < n; ++i) {
            const T v = from[i * inner], w = from[best * inner];
            if ((kMaximum ? v > w : v < w) || (v != v && w == w)) best = i;
          }
          if (narrow)
            out->data<int32_t>()[row] = static_cast<int32_t>(best);
          else
            out->data<int64_t>()[row] = best;
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status AddArgMaxOp(OpRegistry* registry, const std::string& type,
                         BindFn bind) {
  OpDef op(type);
  op.Input("X").Output("Out").RequiredAttr("axis", AttrType::kLong);
  op.Attr("keepdims", false).Attr("flatten", false).Attr("dtype", int32_t{3});
  op.Infer(InferArg).NoGrad().Reference(bind);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterArgMax(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddArgMaxOp(registry, "arg_max", BindArg<true>));
  return AddArgMaxOp(registry, "arg_min", BindArg<false>);
}

}  // namespace pd
