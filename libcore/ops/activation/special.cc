// SPDX-License-Identifier: Apache-2.0
// Functions of one variable whose slots are called x and out:
//   op         out                                  x@GRAD = out@GRAD *
//   i0, i1     modified Bessel functions of the     i1; i0 - i1 / x
//              first kind, of order 0 and 1
//   i0e, i1e   exp(-|x|) times i0, i1               i1e - sign(x) i0e;
//                                                   i0e - i1e (sign(x) + 1 / x)
//   polygamma  the n-th derivative of digamma       polygamma of n + 1
// The Bessel functions are sums of their power series, whose terms all have one
// sign, and of the asymptotic series where |x| is large.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/activation/gamma_functions.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kSpecialGrain = 1024;  // elements per thread at least
constexpr double kLarge = 30.0;  // from here the asymptotic series is exact

// exp(-x) I(x) of order 0 or 1, x >= 0.
double ScaledBessel(int order, double x) {
  if (x != x) return x;
  if (x > kLarge) {
    if (std::isinf(x)) return 0.0;
    const double mu = 4.0 * order * order;
    double term = 1.0, sum = 1.0;
    for (int k = 1; k < 60; ++k) {
      const double odd = 2.0 * k - 1.0;
      term *= -(mu - odd * odd) / (8.0 * k * x);
      sum += term;
      if (std::fabs(term) < 1e-17) break;
    }
    return sum / std::sqrt(2.0 * M_PI * x);
  }
  const double quarter = 0.25 * x * x;
  double term = order == 0 ? 1.0 : 0.5 * x, sum = term;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return std::exp(-x) * sum;
}

double SpecialSign(double x) { return static_cast<double>(x > 0) - (x < 0); }
double I0e(double x) { return ScaledBessel(0, std::fabs(x)); }
double I1e(double x) { return std::copysign(ScaledBessel(1, std::fabs(x)), x); }
double Grown(double scaled, double x) {
  return std::isinf(x) ? std::copysign(x, scaled)
                       : scaled * std::exp(std::fabs(x));
}
double I0(double x) { return std::fabs(Grown(I0e(x), x)); }
double I1(double x) { return Grown(I1e(x), x); }

// The functions and their derivatives; `n` is polygamma's.
struct BesselI0 {
  static double F(double x, int) { return I0(x); }
  static double D(double x, int) { return I1(x); }
};
struct BesselI0e {
  static double F(double x, int) { return I0e(x); }
  static double D(double x, int) {
    return I1e(x) - std::copysign(1.0, x) * I0e(x);  // -1 at 0
  }
};
struct BesselI1 {
  static double F(double x, int) { return I1(x); }
  static double D(double x, int) { return x == 0 ? 0.5 : I0(x) - I1(x) / x; }
};
struct BesselI1e {
  static double F(double x, int) { return I1e(x); }
  static double D(double x, int) {
    return x == 0 ? 0.5 : I0e(x) - I1e(x) * (SpecialSign(x) + 1.0 / x);
  }
};
struct Polygamma {
  static double F(double x, int n) { return PolygammaOf(n, x); }
  static double D(double x, int n) { return PolygammaOf(int64_t{n} + 1, x); }
};

// Of polygamma alone; the other functions have no order.
int32_t OrderOf(const OpDesc& op) { return op.AttrOr<int32_t>("n", 0); }

absl::Status InferSpecialForward(InferContext* context) {
  const int32_t n = OrderOf(context->op());
  if (n < 0) return InvalidArgument("attr 'n' is %d; expected 0 or more", n);
  context->Share("x", "out");
  return absl::OkStatus();
}

template <typename Function>
absl::StatusOr<Step> BindSpecialForward(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  context->MayShare(x, out);
  const int32_t n = OrderOf(context->op());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, n](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ParallelFor(x->size(), kSpecialGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = static_cast<T>(Function::F(in[i], n));
      });
      return absl::OkStatus();
    });
  });
}

template <typename Function>
absl::StatusOr<Step> BindSpecialGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* dout = context->Input("out@GRAD");
  Tensor* dx = context->Output("x@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "out@GRAD", x->dtype(), x->size()));
  if (Tensor* out = context->Input("out")) context->NoBuffer(out);
  context->MayShare(dout, dx);
  const int32_t n = OrderOf(context->op());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, dout, dx, n](const RunContext&) {
      const T *in = x->data<T>(), *d = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(x->size(), kSpecialGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = static_cast<T>(d[i] * Function::D(in[i], n));
      });
      return absl::OkStatus();
    });
  });
}

// `gives_out`: the gradient op gets out too, as in PaddlePaddle.
template <typename Function>
absl::Status AddOp(OpRegistry* registry, const std::string& type,
                   bool gives_out) {
  OpDef op(type);
  op.Input("x").Output("out").Infer(InferSpecialForward);
  op.Reference(BindSpecialForward<Function>);
  GradSpec spec{type + "_grad", {"x"}, {}, {"out"}, {"x"}};
  if (gives_out) spec.outputs = {"out"};
  op.Grad(std::move(spec));

  OpDef grad(type + "_grad");
  grad.Input("x").OptionalInput("out").Input("out@GRAD").Output("x@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSpecialGrad<Function>);
  if (type == "polygamma") {
    op.RequiredAttr("n", AttrType::kInt);
    grad.RequiredAttr("n", AttrType::kInt);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterSpecial(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp<BesselI0>(registry, "i0", false));
  PD_RETURN_IF_ERROR(AddOp<BesselI0e>(registry, "i0e", true));
  PD_RETURN_IF_ERROR(AddOp<BesselI1>(registry, "i1", true));
  PD_RETURN_IF_ERROR(AddOp<BesselI1e>(registry, "i1e", true));
  return AddOp<Polygamma>(registry, "polygamma", false);
}

}  // namespace pd
