// SPDX-License-Identifier: Apache-2.0
// Out = |X|; of complex numbers it is real.
// X@GRAD = Out@GRAD X / |X|, 0 where X is 0; its gradient by Out@GRAD is the
// real part of ddX conj(X) / |X|.
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/common/unary_curve.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename Body>
auto DispatchAbs(DType dtype, const Body& body) {
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                       std::complex<float>, std::complex<double>>(dtype, body);
}

DType RealDType(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  if (dtype == DType::kComplex128) return DType::kFloat64;
  return dtype;
}

absl::Status InferAbs(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.dtype = RealDType(out.dtype);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAbs(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() == out->dtype()) context->MayShare(x, out);
  return DispatchAbs(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using R = RealOf<T>;
    return Step([x, out, n = x->size()](const RunContext&) {
      const T* in = x->data<T>();
      R* result = out->data<R>();
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if constexpr (std::is_integral_v<T>)
            result[i] = in[i] < 0 ? static_cast<T>(0 - in[i]) : in[i];
          else
            result[i] = Stored<R>(std::abs(Computed<T>(in[i])));
        }
      });
      return absl::OkStatus();
    });
  });
}

template <typename T, typename R>
T AbsGrad(T x, R d) {
  if constexpr (std::is_same_v<T, R>) {
    return x > T(0) ? d : (x < T(0) ? Stored<T>(-d) : T(0));
  } else {
    const R size = std::abs(x);
    return size == R(0) ? T(0) : x / size * d;
  }
}

absl::StatusOr<Step> BindAbsGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", RealDType(x->dtype()), x->size()));
  if (dout->dtype() == dx->dtype()) context->MayShare(dout, dx);
  return DispatchAbs(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using R = RealOf<T>;
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

absl::Status InferAbsSecond(InferContext* context) {
  TensorMeta out = context->Input("x");
  out.value = nullptr;
  out.dtype = RealDType(out.dtype);
  context->SetOutput("grad_out@GRAD", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAbsSecond(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* ddx = context->Input("grad_x@GRAD");
  Tensor* ddout = context->Output("grad_out@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "grad_x@GRAD", x->dtype(), x->size()));
  return DispatchAbs(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using R = RealOf<T>;
    return Step([x, ddx, ddout, n = x->size()](const RunContext&) {
      const T *in = x->data<T>(), *d = ddx->data<T>();
      R* result = ddout->data<R>();
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (kIsComplex<T>)
          result[i] =
              AbsGrad<T, R>(std::conj(in[i]), R(1)).real() * d[i].real() -
              AbsGrad<T, R>(std::conj(in[i]), R(1)).imag() * d[i].imag();
        else
          result[i] = AbsGrad<T, R>(in[i], d[i]);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::vector<OpDesc>> AbsSecondMaker(const GradRequest& request) {
  const OpDesc& grad = request.op;
  std::vector<OpDesc> ops;
  if (!request.needs_grad(grad.In("Out@GRAD"))) return ops;
  OpDesc op;
  op.type = "abs_double_grad";
  op.SetInput("x", {grad.In("X")});
  op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
  op.SetOutput("grad_out@GRAD", {GradName(grad.In("Out@GRAD"))});
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterAbs(OpRegistry* registry) {
  OpDef op("abs");
  op.Input("X").Output("Out").Infer(InferAbs).Reference(BindAbs);
  op.Grad(GradSpec{"abs_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("abs_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).Grad(GradMaker(AbsSecondMaker));
  grad.Reference(BindAbsGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second("abs_double_grad");
  second.Input("x").Input("grad_x@GRAD").Output("grad_out@GRAD");
  second.Infer(InferAbsSecond).Grad(LinearThird("abs_grad", "X", "x"));
  second.Reference(BindAbsSecond);
  return registry->Add(std::move(second));
}

}  // namespace pd
