// SPDX-License-Identifier: Apache-2.0
// Out = X^factor; the factor is the attribute, or the element of FactorTensor.
// X@GRAD = Out@GRAD factor X^(factor - 1); of that, with the cotangent ddX:
//   the gradient by Out@GRAD is ddX factor X^(factor - 1),
//   by X it is ddX Out@GRAD factor (factor - 1) X^(factor - 2)
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/number_of.h"
#include "libcore/ops/common/op_formula.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kPowGrain = 2048;  // elements per thread at least

// The factor of one step.
struct Factor {
  Tensor* tensor = nullptr;
  float attr = 1;
  double Value() const {
    return tensor != nullptr ? NumberOf<double>(*tensor) : attr;
  }
};

absl::StatusOr<Factor> FactorOf(const BindContext& context) {
  Factor f{context.Input("FactorTensor"), context.Attr<float>("factor")};
  if (f.tensor != nullptr)
    PD_RETURN_IF_ERROR(CheckNumber(*f.tensor, "FactorTensor"));
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

// result[i] = factor[i] * in[i]^by; without `factor` the power alone. The
// question which power it is is asked once.
template <typename T>
void PowerRow(const T* in, double by, const T* factor, double scale, int64_t n,
              T* result) {
  using C = Computed<T>;
  const auto fill = [&](const auto& power) {
    if (factor == nullptr) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) result[i] = Stored<T>(power(C(in[i])));
    } else {
      const C s = static_cast<C>(scale);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        result[i] = Stored<T>(C(factor[i]) * s * power(C(in[i])));
    }
  };
  if (by == 1)
    fill([](C x) { return x; });
  else if (by == 2)
    fill([](C x) { return static_cast<C>(x * x); });
  else
    fill([by](C x) { return Power(x, by); });
}

template <typename Body>
auto DispatchPow(DType dtype, const Body& body) {
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t>(
      dtype, body);
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
      ParallelFor(n, kPowGrain, [&](int64_t begin, int64_t end) {
        PowerRow<T>(in + begin, by, nullptr, 1, end - begin, result + begin);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPowGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const Factor factor, FactorOf(*context));
  context->MayShare(dout, dx);
  return DispatchPow(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, dout, dx, factor, n = x->size()](const RunContext&) {
      const double by = factor.Value();
      const T* in = x->data<T>();
      const T* d = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kPowGrain, [&](int64_t begin, int64_t end) {
        PowerRow<T>(in + begin, by - 1, d + begin, by, end - begin,
                    result + begin);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferPowSecond(InferContext* context) {
  context->Share("X", "X@GRAD");
  context->Share("X", "grad_out@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPowSecond(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("grad_out");
  Tensor* ddx = context->Input("grad_x@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* ddout = context->Output("grad_out@GRAD");
  for (const char* slot : {"grad_out", "grad_x@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const Factor factor, FactorOf(*context));
  return DispatchPow(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    using C = Computed<T>;
    return Step([=, n = x->size()](const RunContext&) {
      const double by = factor.Value();
      const C slope = static_cast<C>(by), bend = static_cast<C>(by * (by - 1));
      const T* in = x->data<T>();
      const T* d = ddx->data<T>();
      for (int64_t i = 0; dx != nullptr && i < n; ++i)
        dx->data<T>()[i] = Stored<T>(C(d[i]) * C(dout->data<T>()[i]) * bend *
                                     Power(C(in[i]), by - 2));
      for (int64_t i = 0; ddout != nullptr && i < n; ++i)
        ddout->data<T>()[i] =
            Stored<T>(C(d[i]) * slope * Power(C(in[i]), by - 1));
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::vector<OpDesc>> PowSecondMaker(const GradRequest& request) {
  const OpDesc& grad = request.op;
  const std::string x = grad.In("X"), dout = grad.In("Out@GRAD");
  std::vector<OpDesc> ops;
  if (!request.needs_grad(x) && !request.needs_grad(dout)) return ops;
  OpDesc op;
  op.type = "pow_double_grad";
  op.attrs = grad.attrs;
  op.SetInput("X", {x});
  if (!grad.Input("FactorTensor").empty())
    op.SetInput("FactorTensor", grad.Input("FactorTensor"));
  op.SetInput("grad_out", {dout});
  op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
  if (request.needs_grad(x)) op.SetOutput("X@GRAD", {GradName(x)});
  if (request.needs_grad(dout)) op.SetOutput("grad_out@GRAD", {GradName(dout)});
  ops.push_back(std::move(op));
  return ops;
}

// With P_k(p) = p k x^(k - 1), which pow_grad computes, n P_(n-1)(p) is p times
// the derivative of n x^(n - 1).
class PowPowers {
 public:
  explicit PowPowers(const OpDesc& second)
      : f_(second), second_(second), n_(second.Attr<float>("factor")) {}

  OpFormula& f() { return f_; }
  std::string Slope(const std::string& p) { return Power(p, n_); }
  std::string Bend(const std::string& p) {
    return f_.Scale(Power(p, n_ - 1), n_);
  }
  std::string Third(const std::string& p) {
    return f_.Scale(f_.Scale(Power(p, n_ - 2), n_ - 1), n_);
  }

 private:
  std::string Power(const std::string& p, float k) {
    OpDesc op;
    op.type = "pow_grad";
    op.SetInput("X", {second_.In("X")});
    op.SetInput("Out@GRAD", {p});
    op.attrs["factor"] = k;
    return f_.Apply(std::move(op), "X@GRAD");
  }

  OpFormula f_;
  const OpDesc& second_;
  const float n_;
};

absl::StatusOr<std::vector<OpDesc>> PowThirdMaker(const GradRequest& request) {
  const OpDesc& op = request.op;
  if (!op.Input("FactorTensor").empty())
    return Unimplemented("op '%s' has no gradient with 'FactorTensor'",
                         op.type);
  const std::string x = op.In("X"), dout = op.In("grad_out");
  const std::string ddx = op.In("grad_x@GRAD");
  const std::string a = CotangentOf(op, "grad_out@GRAD");
  const std::string b = CotangentOf(op, "X@GRAD");
  PowPowers at(op);
  OpFormula& f = at.f();
  if (!a.empty() && request.needs_grad(ddx)) f.Give(at.Slope(a), ddx);
  if (!a.empty() && request.needs_grad(x)) f.Give(at.Bend(f.Mul(a, ddx)), x);
  if (b.empty()) return f.Take();
  if (request.needs_grad(ddx)) f.Give(at.Bend(f.Mul(b, dout)), ddx);
  if (request.needs_grad(dout)) f.Give(at.Bend(f.Mul(b, ddx)), dout);
  if (request.needs_grad(x)) f.Give(at.Third(f.Mul(f.Mul(b, ddx), dout)), x);
  return f.Take();
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
  grad.Infer(InferGradLikeInput).Grad(GradMaker(PowSecondMaker));
  grad.Reference(BindPowGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second("pow_double_grad");
  second.Input("X").OptionalInput("FactorTensor").Input("grad_out");
  second.Input("grad_x@GRAD").Attr("factor", 1.0f);
  second.OptionalOutput("X@GRAD").OptionalOutput("grad_out@GRAD");
  second.Infer(InferPowSecond).Grad(GradMaker(PowThirdMaker));
  second.Reference(BindPowSecond);
  return registry->Add(std::move(second));
}

}  // namespace pd
