// SPDX-License-Identifier: Apache-2.0
// Out = X^factor; the factor is the attribute, or the element of FactorTensor.
// X@GRAD = Out@GRAD factor X^(factor - 1)
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 2048;  // elements per thread at least

// The factor of one step.
struct Factor {
  Tensor* tensor = nullptr;
  float attr = 1;
  double Value() const {
    return tensor != nullptr ? tensor->data<float>()[0] : attr;
  }
};

absl::StatusOr<Factor> FactorOf(const BindContext& context) {
  Factor f{context.Input("FactorTensor"), context.Attr<float>("factor")};
  if (f.tensor != nullptr &&
      (f.tensor->size() != 1 || f.tensor->dtype() != DType::kFloat32))
    return InvalidArgument("FactorTensor is %s %s; expected one float32",
                           Name(f.tensor->dtype()),
                           ToString(f.tensor->shape()));
  return f;
}

// The usual powers by products, as they are exact where pow is not fast.
template <typename T>
T Power(T x, double by) {
  if (by == 1) return x;
  if (by == 2) return x * x;
  if (by == 0) return T(1);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::llrint(std::pow(static_cast<double>(x), by)));
  else
    return std::pow(x, static_cast<T>(by));
}

template <typename Body>
auto DispatchPow(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t>(dtype, body);
}

absl::StatusOr<Step> BindPow(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Factor factor, FactorOf(*context));
  context->MayShare(x, out);
  return DispatchPow(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, factor, n = x->size()](const RunContext&) {
      const double by = factor.Value();
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = Power(in[i], by);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPowGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Factor factor, FactorOf(*context));
  context->MayShare(dout, dx);
  return DispatchPow(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, dout, dx, factor, n = x->size()](const RunContext&) {
      const double by = factor.Value();
      const T* in = x->data<T>();
      const T* d = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] =
              static_cast<T>(d[i] * static_cast<T>(by) * Power(in[i], by - 1));
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterPow(OpRegistry* registry) {
  OpDef op("pow");
  op.Input("X").OptionalInput("FactorTensor").Output("Out");
  op.Attr("factor", 1.0f).Infer(InferUnary).Reference(BindPow);
  op.Grad(GradSpec{"pow_grad", {"X", "FactorTensor"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("pow_grad");
  grad.Input("X").OptionalInput("FactorTensor").Input("Out@GRAD");
  grad.Output("X@GRAD").Attr("factor", 1.0f);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPowGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
