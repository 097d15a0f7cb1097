// SPDX-License-Identifier: Apache-2.0
// Channels in runs of `groups`: Out[..., c, ...] = the maximum of
// X[..., c * groups + g, ...] over g. X@GRAD: Out@GRAD goes to the first one
// that equals Out.
#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Shape> OutputShape(const OpDesc& op, Shape x) {
  const int32_t groups = op.Attr<int32_t>("groups");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(op.Attr<int32_t>("axis"), x.size()));
  int64_t& channels = x[static_cast<size_t>(axis)];
  if (groups < 2 || (channels >= 0 && channels % groups != 0))
    return InvalidArgument(
        "attr 'groups' is %d; expected 2 or more, a divisor of %d channels",
        groups, channels);
  if (channels >= 0) channels /= groups;
  return x;
}

// Out as lines along the axis.
absl::StatusOr<AxisView> ViewOut(const BindContext& context, const Shape& out) {
  return ViewAxis(out, context.op().Attr<int32_t>("axis"));
}

// Calls body(output element, first input element of its run).
template <typename Body>
void ForEachRun(const AxisView& view, int64_t groups, const Body& body) {
  ParallelFor(view.outer * view.n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t i = 0; i < view.inner; ++i)
        body(r * view.inner + i, r * groups * view.inner + i);
  });
}

absl::StatusOr<Step> BindMaxout(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t groups = context->Attr<int32_t>("groups");
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewOut(*context, out->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      ForEachRun(view, groups, [&](int64_t to, int64_t from) {
        T most = in[from];
        for (int64_t g = 1; g < groups; ++g)
          most = std::max(most, in[from + g * view.inner]);
        out->data<T>()[to] = most;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMaxoutGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const int64_t groups = context->Attr<int32_t>("groups");
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      OutputShape(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out", x->dtype(), shape));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), shape));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewOut(*context, shape));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      ForEachRun(view, groups, [&](int64_t from, int64_t to) {
        for (int64_t g = 0; g < groups; ++g, to += view.inner) {
          if (in[to] != out->data<T>()[from]) continue;
          dx->data<T>()[to] = dout->data<T>()[from];
          break;
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferMaxout(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(Shape shape, OutputShape(context->op(), x.shape));
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMaxout(OpRegistry* registry) {
  OpDef op("maxout");
  op.Input("X").Output("Out");
  op.RequiredAttr("groups", AttrType::kInt).Attr("axis", int32_t{1});
  op.Infer(InferMaxout).Reference(BindMaxout);
  op.Grad(GradSpec{"maxout_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("maxout_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  grad.RequiredAttr("groups", AttrType::kInt).Attr("axis", int32_t{1});
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMaxoutGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
