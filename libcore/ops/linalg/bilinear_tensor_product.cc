// SPDX-License-Identifier: Apache-2.0
// X [n, a], Y [n, b], Weight [k, a, b], Bias [1, k]:
//   Out[n, k] = X[n] Weight[k] Y[n]^T + Bias[k]
//   X@GRAD[n] = sum over k of Out@GRAD[n, k] * Weight[k] Y[n]^T
//   Y@GRAD[n] = sum over k of Out@GRAD[n, k] * X[n] Weight[k]
//   Weight@GRAD[k] = sum over n of Out@GRAD[n, k] * X[n]^T Y[n]
//   Bias@GRAD[k] = sum over n of Out@GRAD[n, k]
#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Sizes {
  int64_t n, a, b, k;
};

absl::StatusOr<Sizes> ReadSizes(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* y = context.Input("Y");
  const Tensor* w = context.Input("Weight");
  if (x->rank() != 2 || y->rank() != 2 || w->rank() != 3 ||
      x->dim(0) != y->dim(0) || w->dim(1) != x->dim(1) ||
      w->dim(2) != y->dim(1) || x->dtype() != y->dtype() ||
      x->dtype() != w->dtype())
    return InvalidArgument("'X' has shape %s, 'Y' %s and 'Weight' %s",
                           ToString(x->shape()), ToString(y->shape()),
                           ToString(w->shape()));
  return Sizes{x->dim(0), x->dim(1), y->dim(1), w->dim(0)};
}

template <typename T>
T Dot(int64_t n, const T* a, const T* b) {
  T sum = T(0);
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y += a * x
template <typename T>
void AddScaled(int64_t n, T a, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

absl::StatusOr<Step> BindBilinearForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* w = context->Input("Weight");
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Sizes s, ReadSizes(*context));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", x->dtype(), s.k));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ParallelFor(s.n * s.k, 4096 / (s.a * s.b + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t n = i / s.k, k = i % s.k;
                      T sum = bias != nullptr ? bias->data<T>()[k] : T(0);
                      for (int64_t a = 0; a < s.a; ++a)
                        sum += x->data<T>()[n * s.a + a] *
                               Dot(s.b, w->data<T>() + (k * s.a + a) * s.b,
                                   y->data<T>() + n * s.b);
                      out->data<T>()[i] = sum;
                    }
                  });
      return absl::OkStatus();
    });
  });
}

struct GradTensors {
  Tensor *x, *y, *w, *dout, *dx, *dy, *dw, *dbias;
};

template <typename T>
void BilinearBackward(const Sizes& s, const GradTensors& t) {
  for (Tensor* to : {t.dx, t.dy, t.dw, t.dbias})
    if (to != nullptr) std::fill_n(to->data<T>(), to->size(), T(0));
  for (int64_t n = 0; n < s.n; ++n) {
    const T* x = t.x->data<T>() + n * s.a;
    const T* y = t.y->data<T>() + n * s.b;
    for (int64_t k = 0; k < s.k; ++k) {
      const T d = t.dout->data<T>()[n * s.k + k];
      if (t.dbias != nullptr) t.dbias->data<T>()[k] += d;
      for (int64_t a = 0; a < s.a; ++a) {
        const int64_t row = (k * s.a + a) * s.b;
        const T* w = t.w->data<T>() + row;
        if (t.dx != nullptr) t.dx->data<T>()[n * s.a + a] += d * Dot(s.b, w, y);
        if (t.dy != nullptr)
          AddScaled(s.b, d * x[a], w, t.dy->data<T>() + n * s.b);
        if (t.dw != nullptr) AddScaled(s.b, d * x[a], y, t.dw->data<T>() + row);
      }
    }
  }
}

absl::StatusOr<Step> BindBackward(BindContext* context) {
  GradTensors t;
  t.x = context->Input("X");
  t.y = context->Input("Y");
  t.w = context->Input("Weight");
  t.dout = context->Input("Out@GRAD");
  t.dx = context->Output("X@GRAD");
  t.dy = context->Output("Y@GRAD");
  t.dw = context->Output("Weight@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  PD_ASSIGN_OR_RETURN(const Sizes s, ReadSizes(*context));
  const DType dtype = t.x->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", dtype, {s.n, s.k}));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      BilinearBackward<T>(s, t);
      return absl::OkStatus();
    });
  });
}

absl::Status Infer(InferContext* context) {
  TensorMeta out = context->Input("X");
  const Shape& weight = context->Input("Weight").shape;
  if (out.shape.size() != 2 || weight.size() != 3)
    return InvalidArgument("'X' has shape %s and 'Weight' %s",
                           ToString(out.shape), ToString(weight));
  out.shape[1] = weight[0];
  out.value = nullptr;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext* context) {
  PD_RETURN_IF_ERROR(InferGradLikeInput(context));
  const TensorMeta& weight = context->Input("Weight");
  if (weight.shape.size() != 3)
    return InvalidArgument("'Weight' has shape %s; expected rank 3",
                           ToString(weight.shape));
  context->SetOutput("Bias@GRAD", {1, weight.shape[0]}, weight.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBilinearTensorProduct(OpRegistry* registry) {
  OpDef op("bilinear_tensor_product");
  op.Input("X").Input("Y").Input("Weight").OptionalInput("Bias");
  op.Output("Out").Infer(Infer).Reference(BindBilinearForward);
  op.Grad(GradSpec{"bilinear_tensor_product_grad",
                   {"X", "Y", "Weight"},
                   {},
                   {"Out"},
                   {"X", "Y", "Weight", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("bilinear_tensor_product_grad");
  grad.Input("X").Input("Y").Input("Weight").OptionalInput("Bias");
  grad.Input("Out@GRAD");
  for (const char* slot : {"X@GRAD", "Y@GRAD", "Weight@GRAD", "Bias@GRAD"})
    grad.OptionalOutput(slot);
  grad.Infer(InferGrad).NoGrad().Reference(BindBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
