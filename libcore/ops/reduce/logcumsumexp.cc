// SPDX-License-Identifier: Apache-2.0
// Out[i] = log(exp(X[0]) + ... + exp(X[i])) along `axis` (of all elements with
// `flatten`); exclusive: without X[i], the first one the lowest number;
// reverse: from the end.
// X@GRAD[i] = the sum over the j that X[i] counts in of
//   Out@GRAD[j] exp(X[i] - Out[j])
// Sums are kept as a factor and an exponent, in double.
#include <cmath>
#include <cstdint>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// factor * exp(exponent)
struct LogcumsumexpScaled {
  double factor = 0.0;
  double exponent = -std::numeric_limits<double>::infinity();

  void Add(double f, double e) {
    if (e > exponent) {
      factor *= std::exp(exponent - e);
      exponent = e;
      factor += f;
    } else if (e == exponent) {
      factor += f;
    } else {
      factor += f * std::exp(e - exponent);
    }
  }
};

struct Plan {
  AxisView view;
  bool exclusive, reverse;
};

absl::StatusOr<Plan> MakePlan(const BindContext& context, const Tensor& x) {
  Plan plan;
  plan.exclusive = context.Attr<bool>("exclusive");
  plan.reverse = context.Attr<bool>("reverse");
  if (context.Attr<bool>("flatten")) {
    plan.view.n = x.size();
  } else {
    PD_ASSIGN_OR_RETURN(plan.view,
                        ViewAxis(x.shape(), context.Attr<int32_t>("axis")));
  }
  return plan;
}

absl::Status InferLogcumsumexpForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (context->Attr<bool>("flatten")) {
    context->SetOutput("Out", {IsDynamic(x.shape) ? -1 : NumElements(x.shape)},
                       x.dtype);
    return absl::OkStatus();
  }
  if (!x.shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), x.shape.size()).status());
  return InferUnary(context);
}

absl::StatusOr<Step> BindLogcumsumexpForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Plan plan, MakePlan(*context, *x));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(plan.view, [&](int64_t, int64_t start) {
        const auto& [outer, n, inner] = plan.view;
        LogcumsumexpScaled sum;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = start + (plan.reverse ? n - 1 - i : i) * inner;
          const double v = x->data<T>()[at];
          if (plan.exclusive && i == 0)
            out->data<T>()[at] = std::numeric_limits<T>::lowest();
          else if (plan.exclusive)
            out->data<T>()[at] =
                static_cast<T>(std::log(sum.factor) + sum.exponent);
          sum.Add(1.0, v);
          if (!plan.exclusive)
            out->data<T>()[at] =
                static_cast<T>(std::log(sum.factor) + sum.exponent);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLogcumsumexpGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  for (const char* slot : {"Out", "Out@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const Plan plan, MakePlan(*context, *x));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(plan.view, [&](int64_t, int64_t start) {
        const auto& [outer, n, inner] = plan.view;
        LogcumsumexpScaled
            sum;  // of Out@GRAD[j] exp(-Out[j]), from the last j on
        for (int64_t i = n; i-- > 0;) {
          const int64_t at = start + (plan.reverse ? n - 1 - i : i) * inner;
          const double v = x->data<T>()[at], d = dout->data<T>()[at];
          const double log = -static_cast<double>(out->data<T>()[at]);
          if (!plan.exclusive) sum.Add(d, log);
          dx->data<T>()[at] =
              sum.factor == 0.0
                  ? T(0)
                  : static_cast<T>(sum.factor * std::exp(sum.exponent + v));
          if (plan.exclusive && i > 0) sum.Add(d, log);
        }
      });
      return absl::OkStatus();
    });
  });
}

void AddLogcumsumexpAttrs(OpDef* op) {
  op->Attr("axis", int32_t{-1}).Attr("flatten", false);
  op->Attr("exclusive", false).Attr("reverse", false);
}

}  // namespace

absl::Status RegisterLogcumsumexp(OpRegistry* registry) {
  OpDef op("logcumsumexp");
  op.Input("X")
      .Output("Out")
      .Infer(InferLogcumsumexpForward)
      .Reference(BindLogcumsumexpForward);
  AddLogcumsumexpAttrs(&op);
  op.Grad(GradSpec{"logcumsumexp_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("logcumsumexp_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  AddLogcumsumexpAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLogcumsumexpGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
