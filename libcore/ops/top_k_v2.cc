// SPDX-License-Identifier: Apache-2.0
// Out, Indices = the k largest (smallest unless `largest`) elements along
// `axis`, in order, and where they were. NaN counts as the largest; of equal
// elements the one that comes first is picked first. k is the attribute, or
// the element of K.
// X@GRAD = Out@GRAD put back to where it came from, 0 elsewhere.
#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferTopK(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  int64_t k = context->Attr<int32_t>("k");
  if (const auto given = IntsIn(*context, "K"))
    k = given->size() == 1 ? given->front() : -1;
  Shape shape = x.shape;
  if (!shape.empty()) {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()));
    int64_t& extent = shape[static_cast<size_t>(axis)];
    if (extent >= 0 && k >= 0 && k > extent)
      return InvalidArgument("k is %d; X has shape %s and axis %d", k,
                             ToString(x.shape), axis);
    extent = k;
  }
  context->SetOutput("Indices", shape, DType::kInt64);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

// X as [outer, n, inner], of which k are taken along the middle.
struct Rows {
  int64_t outer = 1, n = 1, inner = 1, k = 1;
  int64_t count() const { return outer * inner; }
  int64_t Start(int64_t row, int64_t extent) const {
    return row / inner * extent * inner + row % inner;
  }
};

absl::StatusOr<Rows> RowsOf(const OpDesc& op, const Shape& x,
                            const Shape& out) {
  Rows rows;
  if (x.empty()) return rows;
  PD_ASSIGN_OR_RETURN(const int at,
                      NormalizeAxis(op.AttrOr<int32_t>("axis", -1), x.size()));
  const size_t axis = static_cast<size_t>(at);
  rows.outer = NumElements(x, 0, axis);
  rows.n = x[axis];
  rows.inner = NumElements(x, axis + 1, x.size());
  rows.k = out[axis];
  if (rows.k > rows.n)
    return InvalidArgument("k is %d; X has shape %s and axis %d", rows.k,
                           ToString(x), at);
  return rows;
}

template <typename T>
bool Before(T a, int64_t at_a, T b, int64_t at_b, bool largest) {
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a != nan_b) return largest ? nan_a : nan_b;
  if (!nan_a && a != b) return largest ? a > b : a < b;
  return at_a < at_b;
}

absl::StatusOr<Step> BindTopK(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* indices = context->Output("Indices");
  const bool largest = context->Attr<bool>("largest");
  PD_ASSIGN_OR_RETURN(const Rows rows,
                      RowsOf(context->op(), x->shape(), out->shape()));
  Tensor* order =
      context->Scratch(static_cast<size_t>(x->size()) * sizeof(int64_t));
  return DispatchNumeric(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t grain = 4096 / std::max<int64_t>(1, rows.n) + 1;
      ParallelFor(rows.count(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x->data<T>() + rows.Start(row, rows.n);
          const int64_t to = rows.Start(row, rows.k);
          int64_t* sorted = order->data<int64_t>() + row * rows.n;
          for (int64_t i = 0; i < rows.n; ++i) sorted[i] = i;
          std::partial_sort(sorted, sorted + rows.k, sorted + rows.n,
                            [&](int64_t a, int64_t b) {
                              return Before(from[a * rows.inner], a,
                                            from[b * rows.inner], b, largest);
                            });
          for (int64_t j = 0; j < rows.k; ++j) {
            out->data<T>()[to + j * rows.inner] = from[sorted[j] * rows.inner];
            if (indices != nullptr)
              indices->data<int64_t>()[to + j * rows.inner] = sorted[j];
          }
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindTopKGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* indices = context->Input("Indices");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Rows rows,
                      RowsOf(context->op(), dx->shape(), dout->shape()));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      for (int64_t row = 0; row < rows.count(); ++row) {
        const int64_t from = rows.Start(row, rows.k);
        T* to = dx->data<T>() + rows.Start(row, rows.n);
        for (int64_t j = 0; j < rows.k; ++j) {
          const int64_t at = indices->data<int64_t>()[from + j * rows.inner];
          if (at < 0 || at >= rows.n)
            return OutOfRange("index %d is outside [0, %d)", at, rows.n);
          to[at * rows.inner] += dout->data<T>()[from + j * rows.inner];
        }
      }
      return absl::OkStatus();
    });
  });
}

void AddAttrs(OpDef* op) {
  op->OptionalInput("K").Attr("k", int32_t{1}).Attr("axis", int32_t{-1});
  op->Attr("largest", true).Attr("sorted", true);
}

}  // namespace

absl::Status RegisterTopKV2(OpRegistry* registry) {
  OpDef op("top_k_v2");
  op.Input("X").Output("Out").Output("Indices");
  AddAttrs(&op);
  op.Infer(InferTopK).Reference(BindTopK);
  op.Grad(GradSpec{"top_k_v2_grad", {"X"}, {"Indices"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("top_k_v2_grad");
  grad.Input("X").Input("Indices").Input("Out@GRAD").Output("X@GRAD");
  AddAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindTopKGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
