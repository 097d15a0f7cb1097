// SPDX-License-Identifier: Apache-2.0
// Ordering along `axis`. Indices are the places in X of what is in Out.
//   argsort: all elements, ascending, or `descending`
//   kthvalue: the k-th smallest one
//   mode: the most frequent one (the smallest of them), its last place
// kthvalue and mode drop the axis unless keepdim.
// X@GRAD = Out@GRAD put back to the places, 0 elsewhere.
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/reduce/ranked.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename Body>
auto DispatchSortable(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                       uint8_t, Float16, BFloat16>(dtype, body);
}

absl::Status InferArgsort(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (!x.shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), x.shape.size()).status());
  TensorMeta indices = x;
  indices.value = nullptr;
  indices.dtype = DType::kInt64;
  context->Share("X", "Out");
  context->SetOutput("Indices", std::move(indices));
  return absl::OkStatus();
}

absl::Status InferOne(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int64_t k = context->op().AttrOr<int32_t>("k", 1);
  Shape shape = x.shape;
  int64_t extent = 1;
  if (!shape.empty()) {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()));
    extent = shape[static_cast<size_t>(axis)];
    if (context->Attr<bool>("keepdim"))
      shape[static_cast<size_t>(axis)] = 1;
    else
      shape.erase(shape.begin() + axis);
  }
  if (k < 1 || (extent >= 0 && k > extent) || extent == 0)
    return InvalidArgument("attr 'k' is %d; X has shape %s", k,
                           ToString(x.shape));
  context->SetOutput("Indices", shape, DType::kInt64);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

// The step that fills a scratch line, calls `work(line)` and stores the `k`
// elements that start at its result.
template <typename T, typename Work>
Step OrderStep(BindContext* context, const AxisView& view, int64_t k,
               const Work& work) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* indices = context->Output("Indices");
  Tensor* scratch =
      context->Scratch(static_cast<size_t>(x->size()) * sizeof(Ranked<T>));
  return [=](const RunContext&) {
    ForEachLine(view, [&](int64_t line, int64_t start) {
      Ranked<T>* ranked = scratch->data<Ranked<T>>() + line * view.n;
      FillRanked(x->data<T>() + start, view.n, view.inner, ranked);
      const Ranked<T>* picked = work(ranked);
      int64_t to = line / view.inner * k * view.inner + line % view.inner;
      for (int64_t j = 0; j < k; ++j, to += view.inner) {
        if (out != nullptr) out->data<T>()[to] = picked[j].value;
        if (indices != nullptr) indices->data<int64_t>()[to] = picked[j].at;
      }
    });
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindArgsort(BindContext* context) {
  const Tensor* x = context->Input("X");
  const bool descending = context->Attr<bool>("descending");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchSortable(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return OrderStep<T>(context, view, view.n, [=](Ranked<T>* line) {
      if (descending)
        std::sort(line, line + view.n, Descending());
      else
        std::sort(line, line + view.n, Ascending());
      return line;
    });
  });
}

absl::StatusOr<Step> BindKthvalue(BindContext* context) {
  const Tensor* x = context->Input("X");
  const int64_t k = context->Attr<int32_t>("k");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  if (k < 1 || k > view.n)
    return InvalidArgument("attr 'k' is %d; X has shape %s", k,
                           ToString(x->shape()));
  return DispatchSortable(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return OrderStep<T>(context, view, 1, [=](Ranked<T>* line) {
      TopK(line, view.n, k, false, Ascending());
      return line + k - 1;
    });
  });
}

absl::StatusOr<Step> BindMode(BindContext* context) {
  const Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchSortable(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return OrderStep<T>(context, view, 1, [n = view.n](Ranked<T>* line) {
      std::sort(line, line + n, Ascending());
      const Ranked<T>* best = line;
      int64_t most = 0, run = 0;
      for (int64_t i = 0; i < n; ++i) {
        ++run;
        if (i + 1 < n && line[i + 1].value == line[i].value) continue;
        if (run > most) {
          most = run;
          best = line + i;
        }
        run = 0;
      }
      return best;
    });
  });
}

absl::Status AddArgsortOp(OpRegistry* registry, const std::string& type,
                          InferFn infer, BindFn bind) {
  const auto add_attrs = [&](OpDef* op) {
    op->Attr("axis", int32_t{-1});
    if (type == "argsort") {
      op->Attr("descending", false);
      return;
    }
    op->Attr("keepdim", false);
    if (type == "kthvalue") op->Attr("k", int32_t{1});
  };
  OpDef op(type);
  op.Input("X").Output("Out").Output("Indices");
  add_attrs(&op);
  op.Infer(infer).Reference(bind);
  op.Grad(GradSpec{type + "_grad", {"X"}, {"Indices"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Indices").Input("Out@GRAD").Output("X@GRAD");
  add_attrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPickedGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterArgsort(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddArgsortOp(registry, "argsort", InferArgsort, BindArgsort));
  PD_RETURN_IF_ERROR(
      AddArgsortOp(registry, "kthvalue", InferOne, BindKthvalue));
  return AddArgsortOp(registry, "mode", InferOne, BindMode);
}

}  // namespace pd
