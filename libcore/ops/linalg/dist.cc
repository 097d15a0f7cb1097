// SPDX-License-Identifier: Apache-2.0
//   dist: Out = the p-norm of z = X - Y, which broadcast: p = 0 counts what is
//     not 0, inf and -inf are the greatest and least |z|, else (sum |z|^p)^1/p
//     dz = Out@GRAD * sign(z) * (|z| / Out)^(p - 1)      0 < |p| < inf
//        = Out@GRAD * sign(z) where |z| = Out, else 0    inf, -inf
//        = 0                                             p = 0
//     X@GRAD = dz, Y@GRAD = -dz, summed where they were broadcast
//   l1_norm: Out = sum of |X|, X@GRAD = Out@GRAD * sign(X)
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/reduce_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename T>
T Sign(T v) {
  return static_cast<T>((v > T(0)) - (v < T(0)));
}

// Calls body(z, at_x, at_y) for every element of the difference.
template <typename T, typename Body>
void ForDifferences(const StridedLoop<3>& loop, const T* x, const T* y,
                    const Body& body) {
  const auto s = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = at[0] + j * s[0], k = at[1] + j * s[1];
      body(x[i] - y[k], i, k);
    }
  });
}

// The usual norm, from parts as reductions have them.
template <typename T>
T EuclideanNorm(const StridedLoop<3>& loop, const T* x, const T* y) {
  const auto s = loop.row_strides();
  double sum = 0;
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t first = 0; first < n; first += kReducePart) {
      const int64_t count = std::min(kReducePart, n - first);
      const T* p = x + at[0] + first * s[0];
      const T* q = y + at[1] + first * s[1];
      T z[kReducePart];
      if (s[0] == 1 && s[1] == 1)
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) z[j] = p[j] - q[j];
      else
        for (int64_t j = 0; j < count; ++j) z[j] = p[j * s[0]] - q[j * s[1]];
      sum += static_cast<double>(ReducePart(z, count, SquareReducer<T>()));
    }
  });
  return static_cast<T>(std::sqrt(sum));
}

template <typename T>
T Norm(const StridedLoop<3>& loop, const T* x, const T* y, T p) {
  if (p == T(2)) return EuclideanNorm(loop, x, y);
  T result = T(0);
  if (std::isinf(p)) {
    if (p < 0 && loop.size() > 0) result = std::numeric_limits<T>::infinity();
    ForDifferences(loop, x, y, [&](T z, int64_t, int64_t) {
      result =
          p > 0 ? std::max(result, std::abs(z)) : std::min(result, std::abs(z));
    });
    return result;
  }
  ForDifferences(loop, x, y, [&](T z, int64_t, int64_t) {
    if (p == T(0))
      result += z != T(0) ? T(1) : T(0);
    else if (p == T(1))
      result += std::abs(z);
    else
      result += std::pow(std::abs(z), p);
  });
  if (p == T(0) || p == T(1)) return result;
  return std::pow(result, T(1) / p);
}

template <typename T>
T Slope(T z, T norm, T p) {
  if (p == T(0)) return T(0);
  if (p == T(1)) return Sign(z);
  if (std::isinf(p)) return std::abs(z) == norm ? Sign(z) : T(0);
  if (p > T(1) && z == T(0)) return T(0);  // with a norm of 0 too
  if (p == T(2)) return z / norm;
  return Sign(z) * std::pow(std::abs(z), p - T(1)) * std::pow(norm, T(1) - p);
}

absl::StatusOr<Step> BindDist(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const float p = context->Attr<float>("p");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  const auto loop = BroadcastLoop(b);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      out->data<T>()[0] =
          Norm<T>(loop, x->data<T>(), y->data<T>(), static_cast<T>(p));
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDistGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  const float p = context->Attr<float>("p");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out", x->dtype(), 1));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(), 1));
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  const auto loop = BroadcastLoop(b);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T norm = out->data<T>()[0], g = dout->data<T>()[0];
      T* to_x = dx != nullptr ? dx->data<T>() : nullptr;
      T* to_y = dy != nullptr ? dy->data<T>() : nullptr;
      if (to_x != nullptr) std::fill_n(to_x, dx->size(), T(0));
      if (to_y != nullptr) std::fill_n(to_y, dy->size(), T(0));
      ForDifferences(loop, x->data<T>(), y->data<T>(),
                     [&](T z, int64_t i, int64_t k) {
                       const T d = g * Slope<T>(z, norm, static_cast<T>(p));
                       if (to_x != nullptr) to_x[i] += d;
                       if (to_y != nullptr) to_y[k] -= d;
                     });
      return absl::OkStatus();
    });
  });
}

absl::Status InferDist(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(
      BroadcastShapes(x.shape, context->Input("Y").shape, -1).status());
  context->SetOutput("Out", {}, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindL1Norm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      T sum = T(0);
      for (int64_t i = 0; i < n; ++i) sum += std::abs(x->data<T>()[i]);
      out->data<T>()[0] = sum;
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindL1NormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(), 1));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      const T g = dout->data<T>()[0];
      for (int64_t i = 0; i < n; ++i)
        dx->data<T>()[i] = g * Sign(x->data<T>()[i]);
      return absl::OkStatus();
    });
  });
}

absl::Status InferL1Norm(InferContext* context) {
  context->SetOutput("Out", {}, context->Input("X").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDist(OpRegistry* registry) {
  OpDef dist("dist");
  dist.Input("X").Input("Y").Output("Out").Attr("p", 2.0f);
  dist.Infer(InferDist).Reference(BindDist);
  dist.Grad(GradSpec{"dist_grad", {"X", "Y"}, {"Out"}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(dist)));

  OpDef dist_grad("dist_grad");
  dist_grad.Input("X").Input("Y").Input("Out").Input("Out@GRAD");
  dist_grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD").Attr("p", 2.0f);
  dist_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindDistGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(dist_grad)));

  OpDef l1("l1_norm");
  l1.Input("X").Output("Out").Infer(InferL1Norm).Reference(BindL1Norm);
  l1.Grad(GradSpec{"l1_norm_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(l1)));

  OpDef l1_grad("l1_norm_grad");
  l1_grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  l1_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindL1NormGrad);
  return registry->Add(std::move(l1_grad));
}

}  // namespace pd
