// SPDX-License-Identifier: Apache-2.0
// max_pool2d_with_index, max_pool3d_with_index: Out is the maximum of each
// window, Mask the position of the first one in its channel (row-major, int32;
// -1 where the window lies in the padding), so
//   X@GRAD[Mask] += Out@GRAD
// adaptive: the `ksize` windows of an axis split it as evenly as possible.
#include "libcore/ops/conv/max_pool_with_index.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/pool_loops.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<PoolGeometry> ReadMaxPool(const OpDesc& op, const Shape& input) {
  const size_t rank = op.type.rfind("max_pool3d", 0) == 0 ? 5 : 4;
  if (input.size() != rank)
    return InvalidArgument("'X' has shape %s; expected rank %d",
                           ToString(input), rank);
  OpDesc pool = op;
  pool.attrs["pooling_type"] = std::string("max");
  PD_ASSIGN_OR_RETURN(PoolGeometry g, ReadPool(pool, input));
  g.adaptive = op.Attr<bool>("adaptive") && !op.Attr<bool>("global_pooling");
  return g;
}

namespace {

absl::StatusOr<Step> BindIndexedPool(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* mask = context->Output("Mask");
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadMaxPool(context->op(), x->shape()));
  const PoolLoops pool(g);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PoolForward<T>(pool, x->data<T>(), out->data<T>(),
                     mask != nullptr ? mask->data<int32_t>() : nullptr);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindIndexedPoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* mask = context->Input("Mask");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadMaxPool(context->op(), x->shape()));
  const Shape shape = g.OutputShape();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Mask", DType::kInt32, shape));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), shape));
  const int64_t planes = g.batch * g.channels;
  const int64_t in_size = NumElements(x->shape(), 2, x->rank());
  const int64_t out_size = NumElements(shape, 2, shape.size());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dx->data<T>(), planes * in_size, T(0));
      for (int64_t i = 0; i < planes * out_size; ++i) {
        const int64_t at = mask->data<int32_t>()[i];
        if (at >= in_size)
          return InvalidArgument("'Mask' holds %d; a channel of 'X' %s has %d",
                                 at, ToString(x->shape()), in_size);
        if (at >= 0)
          dx->data<T>()[i / out_size * in_size + at] += dout->data<T>()[i];
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferIndexedPool(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadMaxPool(context->op(), x.shape));
  context->SetOutput("Out", g.OutputShape(), x.dtype);
  context->SetOutput("Mask", g.OutputShape(), DType::kInt32);
  return absl::OkStatus();
}

void AddIndexedPoolAttrs(OpDef* def, size_t axes) {
  def->RequiredAttr("ksize", AttrType::kInts)
      .Attr("strides", std::vector<int32_t>(axes, 1))
      .Attr("paddings", std::vector<int32_t>(axes, 0))
      .Attr("global_pooling", false)
      .Attr("adaptive", false);
}

absl::Status AddIndexedPool(OpRegistry* registry, const std::string& type,
                            size_t axes) {
  OpDef pool(type);
  pool.Input("X").Output("Out").Output("Mask");
  AddIndexedPoolAttrs(&pool, axes);
  pool.Infer(InferIndexedPool).Reference(BindIndexedPool);
  pool.Grad(GradSpec{type + "_grad", {"X"}, {"Mask"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(pool)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Mask").Input("Out@GRAD").Output("X@GRAD");
  AddIndexedPoolAttrs(&grad, axes);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindIndexedPoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterMaxPoolWithIndex(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddIndexedPool(registry, "max_pool2d_with_index", 2));
  return AddIndexedPool(registry, "max_pool3d_with_index", 3);
}

}  // namespace pd
