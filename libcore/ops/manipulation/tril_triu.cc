// SPDX-License-Identifier: Apache-2.0
// Triangles of matrices; element (i, j) is in the lower one when
// j - i <= diagonal, in the upper one when j - i >= diagonal.
//   tril_triu: X's last two axes with zeros outside the triangle; X@GRAD =
//     Out@GRAD with zeros there
//   tril_indices, triu_indices: rows, then columns, of a triangle's elements
//   eye: ones where i = j, else zeros
#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Columns [first, last) of a row that are in the triangle.
struct Triangle {
  int64_t diagonal;
  bool lower;

  int64_t First(int64_t row, int64_t columns) const {
    return lower ? 0 : std::min(columns, std::max<int64_t>(0, row + diagonal));
  }
  int64_t Last(int64_t row, int64_t columns) const {
    return lower ? std::min(columns, std::max<int64_t>(0, row + diagonal + 1))
                 : columns;
  }
  // Rows [first, last) that hold something.
  int64_t FirstRow(int64_t rows, int64_t columns) const {
    if (columns == 0) return rows;
    return lower ? std::min(rows, std::max<int64_t>(0, -diagonal)) : 0;
  }
  int64_t LastRow(int64_t rows, int64_t columns) const {
    return lower ? rows
                 : std::min(rows, std::max<int64_t>(0, columns - diagonal));
  }
  // By formulas: a file may say any number of rows. Extents are below 2^31.
  int64_t Count(int64_t rows, int64_t columns) const {
    if (!lower)
      return rows * columns - Triangle{diagonal - 1, true}.Count(rows, columns);
    const int64_t begin = FirstRow(rows, columns);
    // Rows that grow by one, then rows that are full.
    const int64_t end = std::max(begin, std::min(rows, columns - diagonal));
    const int64_t n = end - begin;
    const int64_t ends = Last(begin, columns) + Last(end - 1, columns);
    const int64_t growing =
        n == 0 ? 0 : (n % 2 == 0 ? n / 2 * ends : ends / 2 * n);
    return growing + (rows - end) * columns;
  }
};

absl::Status InferTriangle(InferContext* context) {
  const bool grad = context->op().type == "tril_triu_grad";
  const char* from = grad ? "Out@GRAD" : "X";
  if (!context->HasInput(from)) return InvalidArgument("'%s' is missing", from);
  if (context->Input(from).shape.size() < 2)
    return InvalidArgument("'%s' has shape %s; expected rank 2 or more", from,
                           ToString(context->Input(from).shape));
  context->Share(from, grad ? "X@GRAD" : "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTriangle(BindContext* context) {
  const bool grad = context->op().type == "tril_triu_grad";
  Tensor* x = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* out = context->Output(grad ? "X@GRAD" : "Out");
  context->MayShare(x, out);
  const Triangle triangle{context->Attr<int32_t>("diagonal"),
                          context->Attr<bool>("lower")};
  const int64_t columns = x->shape().back();
  const int64_t rows = x->dim(x->rank() - 2);
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      const int64_t lines = columns == 0 ? 0 : x->size() / columns;
      for (int64_t line = 0; line < lines; ++line) {
        const int64_t first = triangle.First(line % rows, columns);
        const int64_t last =
            std::max(first, triangle.Last(line % rows, columns));
        const T* from = in + line * columns;
        T* to = result + line * columns;
        std::fill(to, to + first, T{});
        if (to != from) std::copy(from + first, from + last, to + first);
        std::fill(to + last, to + columns, T{});
      }
      return absl::OkStatus();
    });
  });
}

// Extents of the matrix that an indices op is about.
struct Extents {
  int64_t rows, columns;
  Triangle triangle;
};

template <typename Context>
Extents ExtentsOf(const Context& context) {
  const bool lower = context.op().type == "tril_indices";
  return {context.template Attr<int32_t>(lower ? "rows" : "row"),
          context.template Attr<int32_t>(lower ? "cols" : "col"),
          {context.template Attr<int32_t>("offset"), lower}};
}

absl::StatusOr<DType> DTypeAttr(const InferContext& context) {
  const int32_t code = context.Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  return *dtype;
}

absl::Status InferIndices(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(*context));
  const Extents e = ExtentsOf(*context);
  if (e.rows < 0 || e.columns < 0)
    return InvalidArgument("the matrix is %d x %d", e.rows, e.columns);
  context->SetOutput("out", {2, e.triangle.Count(e.rows, e.columns)}, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindIndices(BindContext* context) {
  Tensor* out = context->Output("out");
  const Extents e = ExtentsOf(*context);
  return DispatchTypes<int32_t, int64_t>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([out, e](const RunContext&) {
          T* row = out->data<T>();
          T* column = row + out->dim(1);
          const int64_t end = e.triangle.LastRow(e.rows, e.columns);
          for (int64_t i = e.triangle.FirstRow(e.rows, e.columns); i < end;
               ++i) {
            const int64_t last = e.triangle.Last(i, e.columns);
            for (int64_t j = e.triangle.First(i, e.columns); j < last; ++j) {
              *row++ = static_cast<T>(i);
              *column++ = static_cast<T>(j);
            }
          }
          return absl::OkStatus();
        });
      });
}

absl::Status InferEye(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(*context));
  const int64_t rows = context->Attr<int64_t>("num_rows");
  int64_t columns = context->Attr<int64_t>("num_columns");
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0)
    return InvalidArgument("attrs 'num_rows' and 'num_columns' are %d and %d",
                           rows, columns);
  context->SetOutput("Out", {rows, columns}, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindEye(BindContext* context) {
  Tensor* out = context->Output("Out");
  return DispatchAll(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([out](const RunContext&) {
      T* result = out->data<T>();
      const int64_t rows = out->dim(0), columns = out->dim(1);
      std::fill_n(result, out->size(), Stored<T>(0.0f));
      for (int64_t i = 0; i < std::min(rows, columns); ++i)
        result[i * columns + i] = Stored<T>(1.0f);
      return absl::OkStatus();
    });
  });
}

absl::Status AddTrilTriuIndices(OpRegistry* registry, const std::string& type,
                                const char* rows, const char* columns) {
  OpDef op(type);
  op.Output("out").Attr(rows, int32_t{0}).Attr(columns, int32_t{0});
  op.Attr("offset", int32_t{0}).Attr("dtype", int32_t{3});
  op.Infer(InferIndices).NoGrad().Reference(BindIndices);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterTrilTriu(OpRegistry* registry) {
  OpDef op("tril_triu");
  op.Input("X").Output("Out").Attr("diagonal", int32_t{0}).Attr("lower", false);
  op.Infer(InferTriangle).Reference(BindTriangle);
  op.Grad(GradSpec{"tril_triu_grad", {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("tril_triu_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("diagonal", int32_t{0}).Attr("lower", false);
  grad.Infer(InferTriangle).Grad(GradientAgain());
  grad.Reference(BindTriangle);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  PD_RETURN_IF_ERROR(
      AddTrilTriuIndices(registry, "tril_indices", "rows", "cols"));
  PD_RETURN_IF_ERROR(
      AddTrilTriuIndices(registry, "triu_indices", "row", "col"));

  OpDef eye("eye");
  eye.Output("Out").RequiredAttr("num_rows", AttrType::kLong);
  eye.Attr("num_columns", int64_t{-1}).Attr("dtype", int32_t{5});
  eye.Infer(InferEye).NoGrad().Reference(BindEye);
  return registry->Add(std::move(eye));
}

}  // namespace pd
