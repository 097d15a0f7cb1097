// SPDX-License-Identifier: Apache-2.0
// Out = X, where every slice along `axis` whose p-norm exceeds max_norm is
// scaled down to it.
// With n = (sum |x|^p)^(1/p) of a slice and c = max_norm / n where n >
// max_norm:
//   X@GRAD = c * d - sum(x * d) * max_norm * n^(-p - 1) * |x|^(p - 1) * sign(x)
// and d = Out@GRAD elsewhere.
#include <cmath>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferRenorm(InferContext* context) {
  PD_RETURN_IF_ERROR(NormalizeAxis(context->Attr<int32_t>("axis"),
                                   context->Input("X").shape.size())
                         .status());
  if (!(context->Attr<float>("p") > 0) ||
      !(context->Attr<float>("max_norm") >= 0))
    return InvalidArgument("attrs 'p' and 'max_norm' are %g and %g",
                           context->Attr<float>("p"),
                           context->Attr<float>("max_norm"));
  return InferUnary(context);
}

// Calls body(first element, count) for the contiguous parts of slice i.
template <typename Body>
void ForSlice(const AxisView& view, int64_t i, const Body& body) {
  for (int64_t o = 0; o < view.outer; ++o)
    body((o * view.n + i) * view.inner, view.inner);
}

// The sum of |x|^p over slice i.
template <typename T>
double PowerSum(const AxisView& view, int64_t i, const T* x, double p) {
  double sum = 0;
  ForSlice(view, i, [&](int64_t at, int64_t n) {
    for (int64_t j = at; j < at + n; ++j)
      sum += std::pow(std::abs(static_cast<double>(x[j])), p);
  });
  return sum;
}

absl::StatusOr<Step> BindRenorm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const double p = context->Attr<float>("p");
  const double most = context->Attr<float>("max_norm");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      for (int64_t i = 0; i < view.n; ++i) {
        const double norm = std::pow(PowerSum(view, i, in, p), 1 / p);
        const T factor = static_cast<T>(norm > most ? most / norm : 1.0);
        ForSlice(view, i, [&](int64_t at, int64_t n) {
          for (int64_t j = at; j < at + n; ++j) result[j] = in[j] * factor;
        });
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindRenormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const double p = context->Attr<float>("p");
  const double most = context->Attr<float>("max_norm");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      const T* d = dout->data<T>();
      T* result = dx->data<T>();
      for (int64_t i = 0; i < view.n; ++i) {
        const double sum = PowerSum(view, i, in, p);
        const double norm = std::pow(sum, 1 / p);
        const bool scaled = norm > most;
        const double factor = scaled ? most / norm : 1.0;
        double dot = 0;
        ForSlice(view, i, [&](int64_t at, int64_t n) {
          for (int64_t j = at; scaled && j < at + n; ++j)
            dot += static_cast<double>(in[j]) * d[j];
        });
        const double slope = scaled ? -dot * most / (sum * norm) : 0.0;
        ForSlice(view, i, [&](int64_t at, int64_t n) {
          for (int64_t j = at; j < at + n; ++j) {
            double change = 0;
            if (scaled)
              change = slope *
                       std::pow(std::abs(static_cast<double>(in[j])), p - 1) *
                       (in[j] >= T(0) ? 1 : -1);
            result[j] = static_cast<T>(factor * d[j] + change);
          }
        });
      }
      return absl::OkStatus();
    });
  });
}

void AddRenormAttrs(OpDef* op) {
  op->RequiredAttr("p", AttrType::kFloat);
  op->RequiredAttr("axis", AttrType::kInt);
  op->RequiredAttr("max_norm", AttrType::kFloat);
}

}  // namespace

absl::Status RegisterRenorm(OpRegistry* registry) {
  OpDef op("renorm");
  op.Input("X").Output("Out").Infer(InferRenorm).Reference(BindRenorm);
  AddRenormAttrs(&op);
  op.Grad(GradSpec{"renorm_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("renorm_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  AddRenormAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRenormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
