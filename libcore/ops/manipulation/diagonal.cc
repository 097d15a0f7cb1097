// SPDX-License-Identifier: Apache-2.0
// Diagonals. `offset` is how many columns above (rows below, when negative) the
// main one.
//   diagonal: Out [..., n] = that of the axes axis1 and axis2, which are
//   dropped trace: Out = its sum diag_embed: Out = 0 but for the diagonal of
//   dim1 and dim2, which is X's last
//     axis
//   diag_v2: of a matrix its diagonal, of a vector (or scalar) the matrix that
//     has it as its diagonal and padding_value elsewhere
// The gradient of what takes a diagonal puts it back, and the other way round;
// diag_embed has none in PaddlePaddle.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// -1 when an extent is not known.
int64_t DiagonalLength(int64_t rows, int64_t columns, int64_t offset) {
  if (rows < 0 || columns < 0) return -1;
  return std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset)
                                          : std::min(rows + offset, columns));
}

// Two different axes of a tensor of `rank`.
struct AxisPair {
  size_t rows = 0, columns = 1;
};

absl::StatusOr<AxisPair> DiagonalAxes(const OpDesc& op, size_t rank) {
  AxisPair pair;
  if (op.type.rfind("diag_v2", 0) == 0) return pair;
  const bool embed = op.type == "diag_embed";
  const char* first = embed ? "dim1" : "axis1";
  const char* second = embed ? "dim2" : "axis2";
  PD_ASSIGN_OR_RETURN(const int rows,
                      NormalizeAxis(op.Attr<int32_t>(first), rank, first));
  PD_ASSIGN_OR_RETURN(const int columns,
                      NormalizeAxis(op.Attr<int32_t>(second), rank, second));
  if (rows == columns)
    return InvalidArgument("attrs '%s' and '%s' both name axis %d", first,
                           second, rows);
  // PaddlePaddle's trace does not tell its axes apart: the earlier one has the
  // rows.
  if (rows > columns && op.type.rfind("trace", 0) == 0)
    return AxisPair{static_cast<size_t>(columns), static_cast<size_t>(rows)};
  pair.rows = static_cast<size_t>(rows);
  pair.columns = static_cast<size_t>(columns);
  return pair;
}

// The diagonal of a tensor: its elements are at `base` + those of tensor 0 of
// the loop; tensor 1 has the other axes, and the diagonal as its last one.
struct Diagonal {
  int64_t base = 0;
  StridedLoop<2> loop;
};

absl::StatusOr<Diagonal> DiagonalOf(const OpDesc& op, const Shape& full,
                                    bool sum) {
  PD_ASSIGN_OR_RETURN(const AxisPair axes, DiagonalAxes(op, full.size()));
  const int64_t offset = op.Attr<int32_t>("offset");
  const auto strides = RowMajorStrides(full);
  const int64_t length =
      DiagonalLength(full[axes.rows], full[axes.columns], offset);
  Diagonal d;
  if (length > 0)
    d.base = offset >= 0 ? offset * strides[axes.columns]
                         : -offset * strides[axes.rows];
  Shape rest;
  std::vector<int64_t> rest_strides;
  for (size_t i = 0; i < full.size(); ++i) {
    if (i == axes.rows || i == axes.columns) continue;
    rest.push_back(full[i]);
    rest_strides.push_back(strides[i]);
  }
  rest.push_back(sum ? 1 : length);
  const auto to = RowMajorStrides(rest);
  for (size_t i = 0; i < rest_strides.size(); ++i)
    d.loop.Add(rest[i], {rest_strides[i], to[i]});
  d.loop.Add(length, {strides[axes.rows] + strides[axes.columns], sum ? 0 : 1});
  return d;
}

// The step that copies the diagonal out of `full`, or into it after `fill`.
template <typename Fill>
Step DiagonalStep(const Diagonal& d, Tensor* full, Tensor* diagonal, bool put,
                  const Fill& fill) {
  return DispatchBytes(full->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (put) fill(full);
      const auto strides = d.loop.row_strides();
      d.loop.ForParts(0, d.loop.size(), [&](const auto& at, int64_t n) {
        T* in = full->data<T>() + d.base + at[0];
        T* out = diagonal->data<T>() + at[1];
        for (int64_t j = 0; j < n; ++j) {
          T& f = in[j * strides[0]];
          T& e = out[j * strides[1]];
          put ? f = e : e = f;
        }
      });
      return absl::OkStatus();
    });
  });
}

void FillZero(Tensor* t) { std::memset(t->raw(), 0, t->bytes()); }

absl::Status InferDiagonal(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(const AxisPair axes,
                      DiagonalAxes(context->op(), x.shape.size()));
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != axes.rows && i != axes.columns) shape.push_back(x.shape[i]);
  if (context->op().type == "diagonal")
    shape.push_back(DiagonalLength(x.shape[axes.rows], x.shape[axes.columns],
                                   context->Attr<int32_t>("offset")));
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDiagonal(BindContext* context) {
  Tensor* x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(const Diagonal d,
                      DiagonalOf(context->op(), x->shape(), false));
  return DiagonalStep(d, x, context->Output("Out"), false, FillZero);
}

absl::StatusOr<Step> BindDiagonalGrad(BindContext* context) {
  context->NoBuffer(context->Input("Input"));
  Tensor* dx = context->Output("Input@GRAD");
  PD_ASSIGN_OR_RETURN(const Diagonal d,
                      DiagonalOf(context->op(), dx->shape(), false));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", dx->dtype(), d.loop.size()));
  return DiagonalStep(d, dx, context->Input("Out@GRAD"), true, FillZero);
}

absl::StatusOr<Step> BindTrace(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Diagonal d,
                      DiagonalOf(context->op(), x->shape(), true));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* result = out->data<T>();
      std::fill_n(result, out->size(), T(0));
      const auto strides = d.loop.row_strides();
      d.loop.ForParts(0, d.loop.size(), [&](const auto& at, int64_t n) {
        const T* in = x->data<T>() + d.base + at[0];
        for (int64_t j = 0; j < n; ++j)
          result[at[1] + j * strides[1]] += in[j * strides[0]];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindTraceGrad(BindContext* context) {
  context->NoBuffer(context->Input("Input"));
  Tensor* dx = context->Output("Input@GRAD");
  PD_ASSIGN_OR_RETURN(const AxisPair axes,
                      DiagonalAxes(context->op(), dx->rank()));
  int64_t sums = 1;
  for (size_t i = 0; i < dx->rank(); ++i)
    if (i != axes.rows && i != axes.columns) sums *= dx->dim(i);
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", dx->dtype(), sums));
  PD_ASSIGN_OR_RETURN(const Diagonal d,
                      DiagonalOf(context->op(), dx->shape(), true));
  return DiagonalStep(d, dx, context->Input("Out@GRAD"), true, FillZero);
}

absl::Status InferDiagEmbed(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  const size_t rank = x.shape.size() + 1;
  if (x.shape.empty())
    return InvalidArgument("Input has rank 0; expected 1 or more");
  PD_ASSIGN_OR_RETURN(const AxisPair axes, DiagonalAxes(context->op(), rank));
  const int64_t n = x.shape.back();
  const int64_t offset = context->Attr<int32_t>("offset");
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(i == axes.rows || i == axes.columns
                        ? (n < 0 ? -1 : n + std::abs(offset))
                        : x.shape[next++]);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDiagEmbed(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Diagonal d,
                      DiagonalOf(context->op(), out->shape(), false));
  return DiagonalStep(d, out, context->Input("Input"), true, FillZero);
}

absl::Status InferDiag(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int64_t offset = context->Attr<int32_t>("offset");
  if (x.shape.size() > 2)
    return InvalidArgument("X has shape %s; expected rank 1 or 2",
                           ToString(x.shape));
  Shape shape;
  if (x.shape.size() < 2) {
    const int64_t n = x.shape.empty() ? 1 : x.shape[0];
    shape.assign(2, n < 0 ? -1 : n + std::abs(offset));
  } else {
    shape = {DiagonalLength(x.shape[0], x.shape[1], offset)};
  }
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDiag(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool take = x->rank() == 2;
  PD_ASSIGN_OR_RETURN(
      const Diagonal d,
      DiagonalOf(context->op(), take ? x->shape() : out->shape(), false));
  const float padding = context->Attr<float>("padding_value");
  return DispatchTypes<float, double, int32_t, int64_t, Float16, BFloat16,
                       std::complex<float>, std::complex<double>>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return DiagonalStep(
            d, take ? x : out, take ? out : x, !take, [padding](Tensor* t) {
              std::fill_n(t->data<T>(), t->size(), static_cast<T>(padding));
            });
      });
}

absl::StatusOr<Step> BindDiagGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const bool taken = dx->rank() == 2;
  if (!taken && dout->rank() != 2)
    return InvalidArgument("Out@GRAD has shape %s; expected rank 2",
                           ToString(dout->shape()));
  PD_ASSIGN_OR_RETURN(
      const Diagonal d,
      DiagonalOf(context->op(), taken ? dx->shape() : dout->shape(), false));
  const Tensor* other = taken ? dout : dx;
  if (other->size() != d.loop.size() || dout->dtype() != dx->dtype())
    return InvalidArgument("Out@GRAD is %s %s; X is %s %s", Name(dout->dtype()),
                           ToString(dout->shape()), Name(dx->dtype()),
                           ToString(dx->shape()));
  return DiagonalStep(d, taken ? dx : dout, taken ? dout : dx, taken, FillZero);
}

struct DiagonalKind {
  const char* type;
  const char* input;
  InferFn infer;
  BindFn bind, bind_grad;  // null: no gradient
};

absl::Status AddDiagonalOp(OpRegistry* registry, const DiagonalKind& kind) {
  const std::string type = kind.type;
  const auto add_attrs = [&](OpDef* op) {
    op->Attr("offset", int32_t{0});
    if (type == "diag_v2")
      op->Attr("padding_value", 0.0f);
    else if (type == "diag_embed")
      op->Attr("dim1", int32_t{-2}).Attr("dim2", int32_t{-1});
    else
      op->Attr("axis1", int32_t{0}).Attr("axis2", int32_t{1});
  };
  OpDef op(type);
  op.Input(kind.input).Output("Out").Infer(kind.infer).Reference(kind.bind);
  add_attrs(&op);
  if (kind.bind_grad == nullptr) {
    op.NoGrad();
    return registry->Add(std::move(op));
  }
  op.Grad(GradSpec{type + "_grad", {kind.input}, {}, {"Out"}, {kind.input}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input(kind.input).Input("Out@GRAD").Output(GradName(kind.input));
  add_attrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(kind.bind_grad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterDiagonal(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddDiagonalOp(
      registry,
      {"diagonal", "Input", InferDiagonal, BindDiagonal, BindDiagonalGrad}));
  PD_RETURN_IF_ERROR(AddDiagonalOp(
      registry, {"trace", "Input", InferDiagonal, BindTrace, BindTraceGrad}));
  PD_RETURN_IF_ERROR(AddDiagonalOp(
      registry,
      {"diag_embed", "Input", InferDiagEmbed, BindDiagEmbed, nullptr}));
  return AddDiagonalOp(registry,
                       {"diag_v2", "X", InferDiag, BindDiag, BindDiagGrad});
}

}  // namespace pd
