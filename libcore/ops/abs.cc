// SPDX-License-Identifier: Apache-2.0
// Out = |X|; of complex numbers it is real.
// X@GRAD = Out@GRAD X / |X|, 0 where X is 0.
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/strided_loop.h"

namespace pd {
namespace {

template <typename T>
struct RealType {
  using type = T;
};
template <typename T>
struct RealType<std::complex<T>> {
  using type = T;
};

template <typename Body>
auto DispatchAbs(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, std::complex<float>,
                       std::complex<double>>(dtype, body);
}

absl::Status InferAbs(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  DType dtype = x.dtype;
  if (dtype == DType::kComplex64) dtype = DType::kFloat32;
  if (dtype == DType::kComplex128) dtype = DType::kFloat64;
  TensorMeta out = x;
  out.value = nullptr;
  out.dtype = dtype;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAbs(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() == out->dtype()) context->MayShare(x, out);
  return DispatchAbs(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using R = typename RealType<T>::type;
    return Step([x, out, n = x->size()](const RunContext&) {
      const T* in = x->data<T>();
      R* result = out->data<R>();
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = std::abs(in[i]);
      });
      return absl::OkStatus();
    });
  });
}

template <typename T, typename R>
T AbsGrad(T x, R d) {
  if constexpr (std::is_same_v<T, R>) {
    return x > T(0) ? d : (x < T(0) ? T(-d) : T(0));
  } else {
    const R size = std::abs(x);
    return size == R(0) ? T(0) : x / size * d;
  }
}

absl::StatusOr<Step> BindAbsGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout->dtype() == dx->dtype()) context->MayShare(dout, dx);
  return DispatchAbs(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using R = typename RealType<T>::type;
    return Step([x, dout, dx, n = x->size()](const RunContext&) {
      const T* in = x->data<T>();
      const R* d = dout->data<R>();
      T* result = dx->data<T>();
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = AbsGrad<T, R>(in[i], d[i]);
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterAbs(OpRegistry* registry) {
  OpDef op("abs");
  op.Input("X").Output("Out").Infer(InferAbs).Reference(BindAbs);
  op.Grad(GradSpec{"abs_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("abs_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindAbsGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
