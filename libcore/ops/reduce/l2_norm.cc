// SPDX-License-Identifier: Apache-2.0
// squared_l2_norm: Out [1] = sum(X^2); X@GRAD = 2 * Out@GRAD * X
// clip_by_norm: Out = X * max_norm / n where n = sqrt(sum(X^2)) > max_norm,
// else
//   X; without a gradient, as in PaddlePaddle
// Selected rows are merged before they are clipped: a row is there once then.
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/sum_of_squares.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindSquaredL2Norm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t n = x->size();
  Tensor* sums = context->Scratch(sizeof(double) * SquaresParts(n));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      out->data<T>()[0] =
          static_cast<T>(SumOfSquares(x->data<T>(), n, sums->data<double>()));
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSquaredL2NormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(), 1));
  context->MayShare(x, dx);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      const T factor = T(2) * dout->data<T>()[0];
      const T* in = x->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kSquaresPart, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = factor * in[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindClipByNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const double max_norm = context->Attr<float>("max_norm");
  if (!(max_norm > 0))
    return InvalidArgument("attr 'max_norm' is %g; expected more than 0",
                           max_norm);
  const int64_t n = x->size();
  Tensor* sums = context->Scratch(sizeof(double) * SquaresParts(n));
  PD_ASSIGN_OR_RETURN(Step merge, MergeDuplicates(context, x, out));
  if (merge != nullptr)
    x = out;
  else
    context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      if (merge != nullptr) PD_RETURN_IF_ERROR(merge(run));
      const T* in = x->data<T>();
      T* result = out->data<T>();
      const double norm = std::sqrt(SumOfSquares(in, n, sums->data<double>()));
      // A NaN norm gives a NaN factor and stays visible.
      const T factor =
          norm <= max_norm ? T(1) : static_cast<T>(max_norm / norm);
      ParallelFor(n, kSquaresPart, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = in[i] * factor;
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSquaredL2Norm(InferContext* context) {
  context->SetOutput("Out", {1}, context->Input("X").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterL2Norm(OpRegistry* registry) {
  OpDef squared("squared_l2_norm");
  squared.Input("X").Output("Out");
  squared.Infer(InferSquaredL2Norm).Reference(BindSquaredL2Norm);
  squared.Grad(GradSpec{"squared_l2_norm_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(squared)));

  OpDef grad("squared_l2_norm_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSquaredL2NormGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef clip("clip_by_norm");
  clip.Input("X").Output("Out").RequiredAttr("max_norm", AttrType::kFloat);
  clip.Infer(InferUnary).NoGrad().Reference(BindClipByNorm);
  return registry->Add(std::move(clip));
}

}  // namespace pd
