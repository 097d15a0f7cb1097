// SPDX-License-Identifier: Apache-2.0
// Products with vectors.
//   dot: Out = sum of X * Y over the last axis, of one vector or of rows
//     X@GRAD = Out@GRAD * conj(Y),  Y@GRAD = Out@GRAD * conj(X)
//   mv: Out[i] = sum over j of X[i, j] * Vec[j]
//     X@GRAD[i, j] = Out@GRAD[i] * Vec[j],  Vec@GRAD = X^T Out@GRAD
#include <algorithm>
#include <complex>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/unary.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The sum of products of n elements in lanes, which become a vector's, over
// parts of a length that keeps the rounding of float32 small.
template <typename T>
T SumOfProducts(const T* a, const T* b, int64_t n) {
  constexpr int64_t kLanes = 32, kPart = 4096;
  T total = T(0);
  for (int64_t part = 0; part < n; part += kPart) {
    const int64_t end = std::min(n, part + kPart);
    T lane[kLanes] = {};
    int64_t j = part;
    for (; j + kLanes <= end; j += kLanes)
#pragma omp simd
      for (int64_t l = 0; l < kLanes; ++l) lane[l] += a[j + l] * b[j + l];
    T sum = T(0);
    for (; j < end; ++j) sum += a[j] * b[j];
    for (const T& l : lane) sum += l;
    total += sum;
  }
  return total;
}

absl::StatusOr<Step> BindDot(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), -1));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *a = x->data<T>(), *b = y->data<T>();
      for (int64_t i = 0; i < view.outer; ++i) {
        const int64_t first = i * view.n;
        out->data<T>()[i] = SumOfProducts(a + first, b + first, view.n);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDotGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), -1));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), view.outer));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *a = x->data<T>(), *b = y->data<T>(), *g = dout->data<T>();
      for (int64_t i = 0; i < view.outer; ++i)
        for (int64_t j = i * view.n; j < (i + 1) * view.n; ++j) {
          if (dx != nullptr)
            dx->data<T>()[j] = g[i] * unary_internal::Conj(b[j]);
          if (dy != nullptr)
            dy->data<T>()[j] = g[i] * unary_internal::Conj(a[j]);
        }
      return absl::OkStatus();
    });
  });
}

absl::Status InferDot(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const Shape& y = context->Input("Y").shape;
  if (x.shape.empty() || x.shape.size() > 2 || x.shape.size() != y.size())
    return InvalidArgument(
        "'X' has shape %s, 'Y' has shape %s; expected one "
        "of rank 1 or 2",
        ToString(x.shape), ToString(y));
  context->SetOutput("Out", Shape(x.shape.begin(), x.shape.end() - 1), x.dtype);
  return absl::OkStatus();
}

absl::Status CheckMv(const Shape& x, const Shape& vec) {
  if (x.size() == 2 && vec.size() == 1 &&
      (x[1] == vec[0] || x[1] < 0 || vec[0] < 0))
    return absl::OkStatus();
  return InvalidArgument(
      "'X' has shape %s, 'Vec' has shape %s; expected [m, n] and [n]",
      ToString(x), ToString(vec));
}

absl::StatusOr<Step> BindMv(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* vec = context->Input("Vec");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Vec", x->dtype(), {x->dim(1)}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, m = x->dim(0), n = x->dim(1)](const RunContext&) {
      const T *a = x->data<T>(), *v = vec->data<T>();
      T* result = out->data<T>();
      ParallelFor(m, 16384 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = SumOfProducts(a + i * n, v, n);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMvGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* vec = context->Input("Vec");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dvec = context->Output("Vec@GRAD");
  PD_RETURN_IF_ERROR(CheckMv(x->shape(), vec->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Vec", x->dtype(), {x->dim(1)}));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->dim(0)));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, m = x->dim(0), n = x->dim(1)](const RunContext&) {
      const T *a = x->data<T>(), *v = vec->data<T>(), *g = dout->data<T>();
      if (dvec != nullptr) std::fill_n(dvec->data<T>(), n, T(0));
      for (int64_t i = 0; i < m; ++i) {
        const T by = g[i];
        T* row = dx != nullptr ? dx->data<T>() + i * n : nullptr;
        T* sums = dvec != nullptr ? dvec->data<T>() : nullptr;
        if (row != nullptr)
          for (int64_t j = 0; j < n; ++j) row[j] = by * v[j];
        if (sums != nullptr)
          for (int64_t j = 0; j < n; ++j) sums[j] += by * a[i * n + j];
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferMv(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(CheckMv(x.shape, context->Input("Vec").shape));
  context->SetOutput("Out", {x.shape[0]}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDot(OpRegistry* registry) {
  OpDef dot("dot");
  dot.Input("X").Input("Y").Output("Out").Infer(InferDot).Reference(BindDot);
  dot.Grad(GradSpec{"dot_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(dot)));

  OpDef dot_grad("dot_grad");
  dot_grad.Input("X").Input("Y").Input("Out@GRAD");
  dot_grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  dot_grad.Infer(InferGradLikeInput).Grad(BilinearSecond("dot"));
  dot_grad.Reference(BindDotGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(dot_grad)));

  OpDef mv("mv");
  mv.Input("X").Input("Vec").Output("Out").Infer(InferMv).Reference(BindMv);
  mv.Grad(GradSpec{"mv_grad", {"X", "Vec"}, {}, {"Out"}, {"X", "Vec"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(mv)));

  OpDef mv_grad("mv_grad");
  mv_grad.Input("X").Input("Vec").Input("Out@GRAD");
  mv_grad.OptionalOutput("X@GRAD").OptionalOutput("Vec@GRAD");
  mv_grad.Infer(InferGradLikeInput).Reference(BindMvGrad);
  mv_grad.Grad(BilinearSecond("mv", {"X", "Vec", "Out"}));
  return registry->Add(std::move(mv_grad));
}

}  // namespace pd
