// SPDX-License-Identifier: Apache-2.0
// l = Target * (log(Target) - X) where Target > 0, else 0; X is a logarithm.
// Loss = l, or its sum: whole (reduction "sum"), divided by the elements
// ("mean") or by the first extent ("batchmean").
// X@GRAD = -Target * Loss@GRAD where Target > 0, divided likewise
#include "libcore/ops/loss/kldiv_loss.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<double> KldivDivisor(const OpDesc& op, const Shape& x) {
  const auto how = op.Attr<std::string>("reduction");
  if (how == "none") return 0.0;
  if (how == "sum") return 1.0;
  if (how == "mean") return static_cast<double>(NumElements(x));
  if (how == "batchmean") return x.empty() ? 1.0 : static_cast<double>(x[0]);
  return InvalidArgument(
      "attr 'reduction' is '%s'; expected none, sum, mean or batchmean", how);
}

namespace {

absl::StatusOr<Step> BindKldivLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* target = context->Input("Target");
  Tensor* loss = context->Output("Loss");
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Target", x->dtype(), n));
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* p = x->data<T>();
      const T* t = target->data<T>();
      T* out = loss->data<T>();
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const T l = t[i] > T(0) ? t[i] * (std::log(t[i]) - p[i]) : T(0);
        if (divisor == 0)
          out[i] = l;
        else
          sum += l;
      }
      if (divisor != 0) out[0] = static_cast<T>(sum / divisor);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindKldivLossGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* target = context->Input("Target");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  const int64_t n = x->size();
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Target", x->dtype(), n));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", x->dtype(), divisor == 0 ? n : 1));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* t = target->data<T>();
      const T* g = dloss->data<T>();
      T* result = dx->data<T>();
      const T whole = divisor == 0 ? T(0) : static_cast<T>(g[0] / divisor);
      ParallelFor(n, 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] =
              t[i] > T(0) ? -t[i] * (divisor == 0 ? g[i] : whole) : T(0);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferKldivLoss(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (context->Input("Target").shape.size() != x.shape.size())
    return InvalidArgument("'X' has shape %s; 'Target' has %s",
                           ToString(x.shape),
                           ToString(context->Input("Target").shape));
  PD_RETURN_IF_ERROR(KldivDivisor(context->op(), x.shape).status());
  const bool none = context->Attr<std::string>("reduction") == "none";
  context->SetOutput("Loss", none ? x.shape : Shape{}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterKldivLoss(OpRegistry* registry) {
  OpDef loss("kldiv_loss");
  loss.Input("X").Input("Target").Output("Loss");
  loss.Attr("reduction", std::string("mean"));
  loss.Infer(InferKldivLoss).Reference(BindKldivLoss);
  loss.Grad(GradSpec{"kldiv_loss_grad", {"X", "Target"}, {}, {"Loss"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(loss)));

  OpDef grad("kldiv_loss_grad");
  grad.Input("X").Input("Target").Input("Loss@GRAD").Output("X@GRAD");
  grad.Attr("reduction", std::string("mean"));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindKldivLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
