// SPDX-License-Identifier: Apache-2.0
// Products with sparse matrices, of rank 2, or of rank 3 as batches of them.
//   sparse_matmul: x y. A sparse x and a dense y give a dense tensor; two
//     sparse ones of one form a sparse one, at the places where a product has
//     a term
//   sparse_masked_matmul: x y of dense tensors at the places of a CSR `mask`
//   sparse_mv: x times a dense vector
//   sparse_addmm: beta input + alpha x y; y and input are both dense or both
//     sparse
#include <algorithm>
#include <numeric>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

// A batch of matrices by rows.
struct Rows {
  int64_t batches, height, width;
  std::vector<int64_t> begins;  // of each row of each matrix, and the end
  std::vector<int64_t> columns;
  Tensor values;
};

absl::StatusOr<Rows> RowsOf(const Tensor& x) {
  Tensor csr = x;
  if (IsCoo(x.kind())) {
    PD_ASSIGN_OR_RETURN(csr, CooToCsr(x));
  }
  const size_t rank = csr.rank();
  Rows rows{rank == 3 ? csr.dim(0) : 1, csr.dim(rank - 2),
            csr.dim(rank - 1),          {},
            IntsOf(CsrColumns(csr)),    SparseValues(csr)};
  const std::vector<int64_t> crows = IntsOf(CsrRows(csr));
  int64_t all = 0;
  for (int64_t b = 0; b < rows.batches; ++b) {
    const int64_t* at = crows.data() + b * (rows.height + 1);
    for (int64_t r = 0; r < rows.height; ++r)
      rows.begins.push_back(all + at[r]);
    all += at[rows.height];
  }
  rows.begins.push_back(all);
  return rows;
}

// The shape of x y; the last extent is that of y.
absl::StatusOr<Shape> ProductShape(const Shape& x, const Shape& y) {
  const size_t rank = x.size();
  if ((rank != 2 && rank != 3) || y.size() != rank)
    return InvalidArgument(
        "x has shape %s and y %s; expected matrices, or batches of them",
        ToString(x), ToString(y));
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (differ(x[rank - 1], y[rank - 2]) || (rank == 3 && differ(x[0], y[0])))
    return InvalidArgument("x has shape %s and y %s, which have no product",
                           ToString(x), ToString(y));
  Shape out = x;
  out.back() = y.back();
  return out;
}

absl::StatusOr<Tensor> TimesDense(const Tensor& x, const Tensor& y,
                                  const Shape& shape) {
  PD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(x));
  Tensor out;
  PD_RETURN_IF_ERROR(out.Resize(x.dtype(), shape));
  const int64_t width =
      NumElements(y.shape()) / std::max<int64_t>(rows.batches * rows.width, 1);
  PD_RETURN_IF_ERROR(DispatchFloat(x.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ParallelFor(
        rows.batches * rows.height, 16, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            T* to = out.data<T>() + r * width;
            std::fill(to, to + width, T(0));
            const T* of = y.data<T>() + r / rows.height * rows.width * width;
            const auto at = static_cast<size_t>(r);
            for (int64_t k = rows.begins[at]; k < rows.begins[at + 1]; ++k) {
              const T value = rows.values.data<T>()[k];
              const T* from = of + rows.columns[static_cast<size_t>(k)] * width;
              for (int64_t j = 0; j < width; ++j) to[j] += value * from[j];
            }
          }
        });
    return absl::OkStatus();
  }));
  return out;
}

// Row by row: the sums of a row lie in a dense one, `used` are its places.
template <typename T>
absl::StatusOr<Tensor> TimesSparse(const Rows& x, const Rows& y,
                                   const Shape& shape, DType index) {
  std::vector<T> sums(static_cast<size_t>(y.width), T(0)), values;
  std::vector<char> seen(sums.size(), 0);
  std::vector<int64_t> used, columns, crows;
  for (int64_t r = 0; r < x.batches * x.height; ++r) {
    if (r % x.height == 0) crows.push_back(0);
    used.clear();
    const auto at = static_cast<size_t>(r);
    for (int64_t k = x.begins[at]; k < x.begins[at + 1]; ++k) {
      const auto row = static_cast<size_t>(r / x.height * y.height +
                                           x.columns[static_cast<size_t>(k)]);
      for (int64_t i = y.begins[row]; i < y.begins[row + 1]; ++i) {
        const auto column =
            static_cast<size_t>(y.columns[static_cast<size_t>(i)]);
        if (!seen[column]) used.push_back(static_cast<int64_t>(column));
        seen[column] = 1;
        sums[column] += x.values.data<T>()[k] * y.values.data<T>()[i];
      }
    }
    std::sort(used.begin(), used.end());
    for (const int64_t column : used) {
      const auto c = static_cast<size_t>(column);
      columns.push_back(column);
      values.push_back(sums[c]);
      sums[c] = T(0);
      seen[c] = 0;
    }
    crows.push_back(crows.back() + static_cast<int64_t>(used.size()));
  }
  if (x.height == 0) crows.assign(static_cast<size_t>(x.batches), 0);
  const auto nnz = static_cast<int64_t>(columns.size());
  PD_ASSIGN_OR_RETURN(
      Tensor rows,
      IntegerTensor(index, {static_cast<int64_t>(crows.size())}, crows));
  PD_ASSIGN_OR_RETURN(Tensor cols, IntegerTensor(index, {nnz}, columns));
  Tensor of;
  PD_RETURN_IF_ERROR(of.Resize(DTypeOf<T>(), {nnz}));
  std::copy(values.begin(), values.end(), of.data<T>());
  return MakeCsr(std::move(rows), std::move(cols), std::move(of), shape);
}

absl::StatusOr<Tensor> Product(const Tensor& x, const Tensor& y) {
  PD_ASSIGN_OR_RETURN(const Shape shape, ProductShape(x.shape(), y.shape()));
  if (y.kind() == VarKind::kLodTensor) return TimesDense(x, y, shape);
  PD_ASSIGN_OR_RETURN(const Rows left, RowsOf(x));
  PD_ASSIGN_OR_RETURN(const Rows right, RowsOf(y));
  const DType index = x.elements()[0].dtype();
  PD_ASSIGN_OR_RETURN(
      const Tensor csr,
      DispatchFloat(x.dtype(), [&](auto tag) -> absl::StatusOr<Tensor> {
        return TimesSparse<typename decltype(tag)::type>(left, right, shape,
                                                         index);
      }));
  if (IsCsr(x.kind())) return csr;
  return CsrToCoo(csr);
}

absl::Status NeedOneFloat(const TensorMeta& x, const TensorMeta& y) {
  if (x.dtype != y.dtype ||
      (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64))
    return InvalidArgument("x is %s and y %s; expected float32 or float64",
                           Name(x.dtype), Name(y.dtype));
  return absl::OkStatus();
}

absl::Status InferMatmul(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  const TensorMeta& y = context->Input("y");
  PD_RETURN_IF_ERROR(NeedOneFloat(x, y));
  PD_ASSIGN_OR_RETURN(Shape shape, ProductShape(x.shape, y.shape));
  if (y.kind == VarKind::kLodTensor) {
    context->SetOutput("out", std::move(shape), x.dtype);
    return absl::OkStatus();
  }
  if (y.kind != x.kind)
    return InvalidArgument("y is neither dense nor sparse in the form of x");
  SetSparse(context, "out", x.kind, std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMatmul(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  return Giving(context->Output("out"),
                [=](const Eager&) { return Product(*x, *y); });
}

absl::Status InferMaskedMatmul(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedDense(*context, "x"));
  PD_RETURN_IF_ERROR(NeedDense(*context, "y"));
  const TensorMeta& x = context->Input("x");
  const TensorMeta& mask = context->Input("mask");
  PD_RETURN_IF_ERROR(NeedOneFloat(x, context->Input("y")));
  if (!IsCsr(mask.kind)) return InvalidArgument("'mask' is no CSR tensor");
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      ProductShape(x.shape, context->Input("y").shape));
  if (!IsDynamic(shape) && !IsDynamic(mask.shape) && shape != mask.shape)
    return InvalidArgument("'mask' has shape %s and the product %s",
                           ToString(mask.shape), ToString(shape));
  SetSparse(context, "out", mask.kind, mask.shape, x.dtype);
  return absl::OkStatus();
}

absl::Status InferMv(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  PD_RETURN_IF_ERROR(NeedDense(*context, "vec"));
  const TensorMeta& x = context->Input("x");
  const TensorMeta& vec = context->Input("vec");
  PD_RETURN_IF_ERROR(NeedOneFloat(x, vec));
  if (x.shape.size() != 2 || vec.shape.size() != 1 ||
      (x.shape[1] >= 0 && vec.shape[0] >= 0 && x.shape[1] != vec.shape[0]))
    return InvalidArgument("x has shape %s and vec %s; expected [m, n] and [n]",
                           ToString(x.shape), ToString(vec.shape));
  context->SetOutput("out", {x.shape[0]}, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMv(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* vec = context->Input("vec");
  return Giving(context->Output("out"), [=](const Eager&) {
    return TimesDense(*x, *vec, {x->dim(0)});
  });
}

absl::Status InferAddmm(InferContext* context) {
  PD_RETURN_IF_ERROR(InferMatmul(context));
  const TensorMeta& y = context->Input("y");
  const TensorMeta& input = context->Input("input");
  if (input.kind != y.kind)
    return InvalidArgument("input and y are not both dense or both sparse");
  return NeedOneFloat(input, y);
}

absl::StatusOr<Step> BindAddmm(BindContext* context) {
  Tensor* input = context->Input("input");
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  const float alpha = context->Attr<float>("alpha");
  const float beta = context->Attr<float>("beta");
  return Giving(
      context->Output("out"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        PD_ASSIGN_OR_RETURN(Tensor product, Product(*x, *y));
        if (product.shape() != input->shape())
          return InvalidArgument("input has shape %s and the product %s",
                                 ToString(input->shape()),
                                 ToString(product.shape()));
        const auto scaled = [&](const Tensor& of, float by) {
          Tensor& values = of.kind() == VarKind::kLodTensor
                               ? const_cast<Tensor&>(of)
                               : SparseValues(of);
          return eager.Run("scale", {{"X", &values}}, {{"scale", by}});
        };
        PD_ASSIGN_OR_RETURN(Tensor left, scaled(*input, beta));
        PD_ASSIGN_OR_RETURN(Tensor right, scaled(product, alpha));
        if (product.kind() == VarKind::kLodTensor)
          return eager.Run("elementwise_add", {{"X", &left}, {"Y", &right}});
        return SparseSum(eager, WithValues(*input, std::move(left)),
                         WithValues(product, std::move(right)));
      });
}

// The last two axes of a sparse tensor exchanged.
absl::StatusOr<Tensor> Exchanged(const Tensor& x) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  std::vector<int64_t> axes(coo.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  Shape shape = coo.shape();
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  PD_ASSIGN_OR_RETURN(Tensor indices, GatherRows(CooIndices(coo), axes));
  return MakeCoo(std::move(indices), SparseValues(coo), std::move(shape));
}

absl::StatusOr<Tensor> ExchangedDense(const Eager& eager, Tensor* x) {
  std::vector<int32_t> axes(x->rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return eager.Run("transpose2", {{"X", x}}, {{"axis", axes}});
}

// At the places of x the products of the rows of a and of b, both dense: of
// a b', one for each place.
absl::StatusOr<Tensor> RowProducts(const Tensor& a, const Tensor& b,
                                   const Tensor& x) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const Places places = PlacesOf(coo);
  const int64_t height = x.dim(x.rank() - 2), width = x.dim(x.rank() - 1);
  const int64_t depth = a.rank() == x.rank() ? a.dim(a.rank() - 1) : 1;
  Tensor values;
  PD_RETURN_IF_ERROR(values.Resize(a.dtype(), SparseValues(coo).shape()));
  PD_RETURN_IF_ERROR(DispatchFloat(a.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ParallelFor(static_cast<int64_t>(places.flat.size()), 64,
                [&](int64_t begin, int64_t end) {
                  for (int64_t k = begin; k < end; ++k) {
                    const int64_t at = places.flat[static_cast<size_t>(k)];
                    const int64_t row = at / width;  // of all matrices
                    const T* p = a.data<T>() + row * depth;
                    const T* q = b.data<T>() +
                                 (row / height * width + at % width) * depth;
                    T sum = 0;
                    for (int64_t d = 0; d < depth; ++d) sum += p[d] * q[d];
                    values.data<T>()[k] = sum;
                  }
                });
    return absl::OkStatus();
  }));
  return WithValues(x, std::move(values));
}

absl::StatusOr<Step> BindMaskedMatmul(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* mask = context->Input("mask");
  return Giving(context->Output("out"),
                [=](const Eager& eager) -> absl::StatusOr<Tensor> {
                  PD_ASSIGN_OR_RETURN(const Tensor turned,
                                      ExchangedDense(eager, y));
                  return RowProducts(*x, turned, *mask);
                });
}

// The gradients of x y; that of a sparse product has values at its places
// alone.
absl::StatusOr<Tensor> ProductGradX(const Tensor& x, const Tensor& y,
                                    const Tensor& out_grad) {
  Tensor right = y, grad = out_grad;
  if (y.is_sparse()) {
    PD_ASSIGN_OR_RETURN(right, SparseToDense(y));
    PD_ASSIGN_OR_RETURN(grad, SparseToDense(out_grad));
  }
  return RowProducts(grad, right, x);
}

absl::StatusOr<Tensor> ProductGradY(const Eager& eager, const Tensor& x,
                                    const Tensor& y, const Tensor& out_grad) {
  if (!y.is_sparse()) {
    PD_ASSIGN_OR_RETURN(const Tensor turned, Exchanged(x));
    return TimesDense(turned, out_grad, y.shape());
  }
  PD_ASSIGN_OR_RETURN(Tensor left, SparseToDense(x));
  PD_ASSIGN_OR_RETURN(Tensor grad, SparseToDense(out_grad));
  PD_ASSIGN_OR_RETURN(left, ExchangedDense(eager, &left));
  PD_ASSIGN_OR_RETURN(grad, ExchangedDense(eager, &grad));
  return RowProducts(left, grad, y);
}

// `scale` times what `make` gives, into an output that may be absent.
template <typename Make>
absl::Status GiveScaled(const Eager& eager, float scale, const Make& make,
                        Tensor* out) {
  if (out == nullptr) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(Tensor grad, make());
  if (scale != 1.0f) {
    Tensor& values = grad.is_sparse() ? SparseValues(grad) : grad;
    PD_ASSIGN_OR_RETURN(Tensor scaled, eager.Run("scale", {{"X", &values}},
                                                 {{"scale", scale}}));
    values = std::move(scaled);
  }
  return Give(std::move(grad), out);
}

absl::StatusOr<Step> BindMatmulGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* y_grad = context->Output("y@GRAD");
  return Step([=](const RunContext& run) -> absl::Status {
    const Eager eager(run);
    PD_RETURN_IF_ERROR(GiveScaled(
        eager, 1, [&] { return ProductGradX(*x, *y, *out_grad); }, x_grad));
    return GiveScaled(
        eager, 1, [&] { return ProductGradY(eager, *x, *y, *out_grad); },
        y_grad);
  });
}

absl::StatusOr<Step> BindMaskedMatmulGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* y_grad = context->Output("y@GRAD");
  return Step([=](const RunContext& run) -> absl::Status {
    const Eager eager(run);
    PD_RETURN_IF_ERROR(GiveScaled(
        eager, 1,
        [&]() -> absl::StatusOr<Tensor> {
          PD_ASSIGN_OR_RETURN(const Tensor turned, ExchangedDense(eager, y));
          return TimesDense(*out_grad, turned, x->shape());
        },
        x_grad));
    return GiveScaled(
        eager, 1,
        [&]() -> absl::StatusOr<Tensor> {
          PD_ASSIGN_OR_RETURN(const Tensor turned, Exchanged(*out_grad));
          PD_ASSIGN_OR_RETURN(const Shape shape,
                              ProductShape(turned.shape(), x->shape()));
          PD_ASSIGN_OR_RETURN(Tensor made, TimesDense(turned, *x, shape));
          return ExchangedDense(eager, &made);
        },
        y_grad);
  });
}

absl::StatusOr<Step> BindMvGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* vec = context->Input("vec");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* vec_grad = context->Output("vec@GRAD");
  return Step([=](const RunContext& run) -> absl::Status {
    const Eager eager(run);
    PD_RETURN_IF_ERROR(GiveScaled(
        eager, 1, [&] { return RowProducts(*out_grad, *vec, *x); }, x_grad));
    return GiveScaled(
        eager, 1,
        [&]() -> absl::StatusOr<Tensor> {
          PD_ASSIGN_OR_RETURN(const Tensor turned, Exchanged(*x));
          return TimesDense(turned, *out_grad, vec->shape());
        },
        vec_grad);
  });
}

absl::StatusOr<Step> BindAddmmGrad(BindContext* context) {
  Tensor* input = context->Input("input");
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* input_grad = context->Output("input@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* y_grad = context->Output("y@GRAD");
  const float alpha = context->Attr<float>("alpha");
  const float beta = context->Attr<float>("beta");
  return Step([=](const RunContext& run) -> absl::Status {
    const Eager eager(run);
    PD_RETURN_IF_ERROR(GiveScaled(
        eager, beta,
        [&]() -> absl::StatusOr<Tensor> {
          if (!input->is_sparse()) return CloneOf(*out_grad);
          PD_ASSIGN_OR_RETURN(const Tensor dense, SparseToDense(*out_grad));
          PD_ASSIGN_OR_RETURN(Tensor values, ValuesAt(dense, *input));
          return WithValues(*input, std::move(values));
        },
        input_grad));
    PD_RETURN_IF_ERROR(GiveScaled(
        eager, alpha, [&] { return ProductGradX(*x, *y, *out_grad); }, x_grad));
    return GiveScaled(
        eager, alpha, [&] { return ProductGradY(eager, *x, *y, *out_grad); },
        y_grad);
  });
}

}  // namespace

absl::Status RegisterSparseMatmul(OpRegistry* registry) {
  OpDef matmul("sparse_matmul");
  matmul.Input("x").Input("y").Output("out");
  absl::Status status =
      AddSparse(registry, std::move(matmul), InferMatmul, BindMatmul,
                {"x", "y"}, {}, {"x", "y"}, BindMatmulGrad);
  OpDef masked("sparse_masked_matmul");
  masked.Input("x").Input("y").Input("mask").Output("out");
  status.Update(AddSparse(registry, std::move(masked), InferMaskedMatmul,
                          BindMaskedMatmul, {"x", "y"}, {}, {"x", "y"},
                          BindMaskedMatmulGrad));
  OpDef mv("sparse_mv");
  mv.Input("x").Input("vec").Output("out");
  status.Update(AddSparse(registry, std::move(mv), InferMv, BindMv,
                          {"x", "vec"}, {}, {"x", "vec"}, BindMvGrad));
  OpDef addmm("sparse_addmm");
  addmm.Input("input").Input("x").Input("y").Output("out");
  addmm.Attr("beta", 1.0f).Attr("alpha", 1.0f);
  status.Update(AddSparse(registry, std::move(addmm), InferAddmm, BindAddmm,
                          {"input", "x", "y"}, {}, {"input", "x", "y"},
                          BindAddmmGrad));
  return status;
}

}  // namespace pd
