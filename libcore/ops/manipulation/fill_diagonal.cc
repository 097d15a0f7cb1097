// SPDX-License-Identifier: Apache-2.0
// X with some elements replaced:
//   fill_any: every element by `value`
//   fill_diagonal: those of the diagonal, shifted by `offset` columns, by
//     `value`. A matrix taller than wide goes on from the top after a free row
//     with `wrap`. Of a tensor of rank > 2, whose extents n are equal, it is
//     those with equal indices; without `wrap` of its first n^2 elements only.
//   fill_diagonal_tensor: the diagonal over the axes dim1, dim2, by Y, which
//     has the other axes of X and then the diagonal
// X@GRAD = Out@GRAD with zeros at these elements. Y gets none, as in
// PaddlePaddle.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindFillAny(BindContext* context) {
  const bool grad = context->op().type == "fill_any_grad";
  if (grad)
    context->NoBuffer(context->Input("Out@GRAD"));
  else
    context->NoBuffer(context->Input("X"));
  Tensor* out = context->Output(grad ? "X@GRAD" : "Out");
  const float value = grad ? 0.0f : context->Attr<float>("value");
  return DispatchAll(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([out, v = Stored<T>(value)](const RunContext&) {
      std::fill_n(out->data<T>(), out->size(), v);
      return absl::OkStatus();
    });
  });
}

// Elements of the diagonal: every `stride`-th from `first` on, below `end`,
// that lies in [0, columns) columns from where `first` would be by itself.
struct FilledDiagonal {
  int64_t columns = 1, stride = 1, end = 0, offset = 0;

  template <typename Body>
  void ForEach(const Body& body) const {
    for (int64_t i = 0; i < end; i += stride) {
      const int64_t column = i % columns + offset;
      if (column >= 0 && column < columns) body(i + offset);
    }
  }
};

absl::StatusOr<FilledDiagonal> FilledDiagonalOf(const BindContext& context,
                                                const Shape& shape) {
  if (shape.size() < 2)
    return InvalidArgument("X has shape %s; expected rank 2 or more",
                           ToString(shape));
  FilledDiagonal d;
  d.columns = shape.back();
  d.offset = context.Attr<int32_t>("offset");
  d.end = NumElements(shape);
  int64_t stride = 0, step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride += step;
    step *= shape[i];
    if (shape.size() > 2 && shape[i] != shape[0])
      return InvalidArgument("X has shape %s; expected equal extents",
                             ToString(shape));
  }
  d.stride = stride;
  if (!context.Attr<bool>("wrap")) d.end = std::min(d.end, shape[1] * shape[1]);
  if (d.columns == 0) d.end = 0;
  return d;
}

absl::Status InferFillDiagonal(InferContext* context) {
  if (context->Input("X").shape.size() < 2)
    return InvalidArgument("X has shape %s; expected rank 2 or more",
                           ToString(context->Input("X").shape));
  return InferUnary(context);
}

absl::StatusOr<Step> BindFillDiagonal(BindContext* context) {
  const bool grad = context->op().type == "fill_diagonal_grad";
  Tensor* x = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* out = context->Output(grad ? "X@GRAD" : "Out");
  context->MayShare(x, out);
  const float value = grad ? 0.0f : context->Attr<float>("value");
  PD_ASSIGN_OR_RETURN(const FilledDiagonal diagonal,
                      FilledDiagonalOf(*context, x->shape()));
  return DispatchAll(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, v = Stored<T>(value)](const RunContext&) {
      T* to = out->data<T>();
      if (to != x->data<T>()) std::copy_n(x->data<T>(), x->size(), to);
      diagonal.ForEach([&](int64_t at) { to[at] = v; });
      return absl::OkStatus();
    });
  });
}

// The diagonal over two axes: Y's elements in order lie in X at the offsets of
// a loop over the other axes and the diagonal.
struct TensorDiagonal {
  StridedLoop<2> loop;  // X; Y
  int64_t first = 0;    // in X
};

absl::StatusOr<TensorDiagonal> TensorDiagonalOf(const BindContext& context,
                                                const Shape& x) {
  PD_ASSIGN_OR_RETURN(
      const int one,
      NormalizeAxis(context.Attr<int32_t>("dim1"), x.size(), "dim1"));
  PD_ASSIGN_OR_RETURN(
      const int two,
      NormalizeAxis(context.Attr<int32_t>("dim2"), x.size(), "dim2"));
  if (one == two)
    return InvalidArgument("attrs 'dim1' and 'dim2' are both axis %d", one);
  const size_t a = static_cast<size_t>(one), b = static_cast<size_t>(two);
  const int64_t offset = context.Attr<int64_t>("offset");
  const std::vector<int64_t> strides = RowMajorStrides(x);
  // Rows [-offset, x[a]) or columns [offset, x[b]).
  const int64_t rows = x[a] + std::min<int64_t>(offset, 0);
  const int64_t columns = x[b] - std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(0, std::min(rows, columns));
  TensorDiagonal d;
  if (length > 0)
    d.first = offset < 0 ? -offset * strides[a] : offset * strides[b];
  Shape y;
  for (size_t i = 0; i < x.size(); ++i)
    if (i != a && i != b) y.push_back(x[i]);
  y.push_back(length);
  const std::vector<int64_t> y_strides = RowMajorStrides(y);
  size_t axis = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (i != a && i != b) {
      d.loop.Add(x[i], {strides[i], y_strides[axis]});
      ++axis;
    }
  d.loop.Add(length, {strides[a] + strides[b], 1});
  return d;
}

template <bool kGrad>
absl::StatusOr<Step> BindFillDiagonalTensor(BindContext* context) {
  Tensor* x = context->Input(kGrad ? "Out@GRAD" : "X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output(kGrad ? "X@GRAD" : "Out");
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const TensorDiagonal d,
                      TensorDiagonalOf(*context, x->shape()));
  if (!kGrad)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Y", x->dtype(), d.loop.size()));
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* to = out->data<T>();
      if (to != x->data<T>()) std::copy_n(x->data<T>(), x->size(), to);
      const auto stride = d.loop.row_strides();
      d.loop.ForParts(0, d.loop.size(), [&](const auto& at, int64_t n) {
        for (int64_t j = 0; j < n; ++j) {
          T& element = to[d.first + at[0] + j * stride[0]];
          if constexpr (kGrad)
            element = T{};
          else
            element = y->data<T>()[at[1] + j * stride[1]];
        }
      });
      return absl::OkStatus();
    });
  });
}

// An op, whose `bind` computes its gradient op too, and attributes that
// `add_attrs` adds to both.
template <typename AddAttrs>
absl::Status AddFillDiagonalOp(OpRegistry* registry, const std::string& type,
                               InferFn infer, BindFn bind, BindFn bind_grad,
                               const AddAttrs& add_attrs) {
  OpDef op(type);
  op.Input("X").Output("Out").Infer(infer).Reference(bind);
  if (type == "fill_diagonal_tensor") op.Input("Y");
  op.Grad(GradSpec{type + "_grad", {}, {}, {"Out"}, {"X"}});
  add_attrs(&op);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad(type + "_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGrad).NoGrad().Reference(bind_grad);
  add_attrs(&grad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterFillDiagonal(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddFillDiagonalOp(
      registry, "fill_any", InferUnary, BindFillAny, BindFillAny,
      [](OpDef* op) { op->Attr("value", 0.0f); }));
  PD_RETURN_IF_ERROR(
      AddFillDiagonalOp(registry, "fill_diagonal", InferFillDiagonal,
                        BindFillDiagonal, BindFillDiagonal, [](OpDef* op) {
                          op->Attr("value", 0.0f).Attr("offset", int32_t{0});
                          op->Attr("wrap", false);
                        }));
  return AddFillDiagonalOp(
      registry, "fill_diagonal_tensor", InferUnary,
      BindFillDiagonalTensor<false>, BindFillDiagonalTensor<true>,
      [](OpDef* op) {
        op->Attr("offset", int64_t{0}).Attr("dim1", int32_t{0});
        op->Attr("dim2", int32_t{1});
      });
}

}  // namespace pd
