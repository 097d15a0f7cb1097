// SPDX-License-Identifier: Apache-2.0
// The vector product along attr 'dim', an axis of extent 3; 9, the default, is
// the first one that there is. For lines a of X and b of Y:
//   Out = a x b,  X@GRAD = conj(b) x Out@GRAD,  Y@GRAD = Out@GRAD x conj(a)
#include <complex>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/unary.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int32_t kFirstOfThree = 9;

absl::StatusOr<int64_t> AxisOf(const OpDesc& op, const Shape& shape) {
  const int32_t dim = op.Attr<int32_t>("dim");
  if (dim == kFirstOfThree) {
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 3) return static_cast<int64_t>(i);
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] < 0) return static_cast<int64_t>(i);
    return InvalidArgument("'X' has shape %s; expected an axis of 3",
                           ToString(shape));
  }
  PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, shape.size(), "dim"));
  const int64_t extent = shape[static_cast<size_t>(axis)];
  if (extent != 3 && extent >= 0)
    return InvalidArgument("'X' has shape %s; expected 3 along axis %d",
                           ToString(shape), axis);
  return axis;
}

// One line, `stride` apart.
template <typename T>
void Cross(const T* a, const T* b, int64_t stride, T* out) {
  const T a0 = a[0], a1 = a[stride], a2 = a[2 * stride];
  const T b0 = b[0], b1 = b[stride], b2 = b[2 * stride];
  out[0] = static_cast<T>(a1 * b2 - a2 * b1);
  out[stride] = static_cast<T>(a2 * b0 - a0 * b2);
  out[2 * stride] = static_cast<T>(a0 * b1 - a1 * b0);
}

absl::StatusOr<Step> BindCross(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), axis));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(view, [&](int64_t, int64_t at) {
        Cross(x->data<T>() + at, y->data<T>() + at, view.inner,
              out->data<T>() + at);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindCrossGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), axis));
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachLine(view, [&](int64_t, int64_t at) {
        const int64_t s = view.inner;
        const T* g = dout->data<T>() + at;
        T a[3], b[3], from[3], result[3];
        for (int64_t i = 0; i < 3; ++i) {
          a[i] = unary_internal::Conj(x->data<T>()[at + i * s]);
          b[i] = unary_internal::Conj(y->data<T>()[at + i * s]);
          from[i] = g[i * s];
        }
        if (dx != nullptr) {
          Cross<T>(b, from, 1, result);
          for (int64_t i = 0; i < 3; ++i) dx->data<T>()[at + i * s] = result[i];
        }
        if (dy != nullptr) {
          Cross<T>(from, a, 1, result);
          for (int64_t i = 0; i < 3; ++i) dy->data<T>()[at + i * s] = result[i];
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferCross(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const Shape& y = context->Input("Y").shape;
  if (x.size() != y.size())
    return InvalidArgument("'X' has shape %s, 'Y' has shape %s; expected one",
                           ToString(x), ToString(y));
  PD_RETURN_IF_ERROR(AxisOf(context->op(), x).status());
  return InferUnary(context);
}

}  // namespace

absl::Status RegisterCross(OpRegistry* registry) {
  OpDef op("cross");
  op.Input("X").Input("Y").Output("Out").Attr("dim", kFirstOfThree);
  op.Infer(InferCross).Reference(BindCross);
  op.Grad(GradSpec{"cross_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cross_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Attr("dim", kFirstOfThree).Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindCrossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
