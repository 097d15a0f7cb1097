// SPDX-License-Identifier: Apache-2.0
// The op "norm": lines along `axis` brought to length 1.
//   Norm = sqrt(sum(X^2) + epsilon); Out = X / Norm
//   X@GRAD = (Out@GRAD - X * sum(X * Out@GRAD) / Norm^2) / Norm
#include <cmath>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindUnitNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* norm = context->Output("Norm");
  const double epsilon = context->Attr<float>("epsilon");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      ForEachLine(view, [&](int64_t line, int64_t start) {
        double squares = epsilon;
        if (view.inner == 1) {
          const T* line_in = in + start;
          T* line_out = out->data<T>() + start;
#pragma omp simd reduction(+ : squares)
          for (int64_t i = 0; i < view.n; ++i)
            squares += double{line_in[i]} * double{line_in[i]};
          const double length = std::sqrt(squares);
          if (norm != nullptr) norm->data<T>()[line] = static_cast<T>(length);
#pragma omp simd
          for (int64_t i = 0; i < view.n; ++i)
            line_out[i] = static_cast<T>(line_in[i] / length);
          return;
        }
        for (int64_t i = 0; i < view.n; ++i) {
          const double v = in[start + i * view.inner];
          squares += v * v;
        }
        const double length = std::sqrt(squares);
        if (norm != nullptr) norm->data<T>()[line] = static_cast<T>(length);
        for (int64_t i = 0; i < view.n; ++i) {
          const int64_t at = start + i * view.inner;
          out->data<T>()[at] = static_cast<T>(in[at] / length);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindUnitNormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* norm = context->Input("Norm");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Norm", x->dtype(), view.outer * view.inner));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      const T* d = dout->data<T>();
      ForEachLine(view, [&](int64_t line, int64_t start) {
        const double length = norm->data<T>()[line];
        double dot = 0;
        for (int64_t i = 0; i < view.n; ++i) {
          const int64_t at = start + i * view.inner;
          dot += double{in[at]} * d[at];
        }
        dot /= length * length;
        for (int64_t i = 0; i < view.n; ++i) {
          const int64_t at = start + i * view.inner;
          dx->data<T>()[at] = static_cast<T>((d[at] - in[at] * dot) / length);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferUnitNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), x.shape.size()));
  Shape shape = x.shape;
  shape[static_cast<size_t>(axis)] = 1;
  context->SetOutput("Norm", std::move(shape), x.dtype);
  return InferUnary(context);
}

void AddUnitNormAttrs(OpDef* def) {
  def->RequiredAttr("axis", AttrType::kInt).Attr("epsilon", 1e-10f);
}

}  // namespace

absl::Status RegisterUnitNorm(OpRegistry* registry) {
  OpDef op("norm");
  op.Input("X").Output("Out").IntermediateOutput("Norm");
  AddUnitNormAttrs(&op);
  op.Infer(InferUnitNorm).Reference(BindUnitNorm);
  op.Grad(GradSpec{"norm_grad", {"X"}, {"Norm"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("norm_grad");
  grad.Input("X").Input("Norm").OptionalInput("Out").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddUnitNormAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindUnitNormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
