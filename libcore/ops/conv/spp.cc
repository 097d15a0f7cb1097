// SPDX-License-Identifier: Apache-2.0
// Spatial pyramid pooling of images [n, channels, height, width]: for each
// level p < pyramid_height a pooling into 2^p x 2^p bins, with windows of
// ceil(extent / bins), as strides too, and half of what is too much as padding.
// Out is [n, all bins], level by level, [channels, bins, bins] in each.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/pool_loops.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Level {
  PoolLoops pool;
  int64_t offset;  // of its first bin in a row of Out
};

absl::Status CheckHeight(const OpDesc& op) {
  const int32_t height = op.Attr<int32_t>("pyramid_height");
  if (height >= 1 && height <= 16) return absl::OkStatus();
  return InvalidArgument("attr 'pyramid_height' is %d; expected 1 to 16",
                         height);
}

int64_t BinsOf(const OpDesc& op) {
  int64_t bins = 0;
  for (int32_t p = 0; p < op.Attr<int32_t>("pyramid_height"); ++p)
    bins += int64_t{1} << (2 * p);
  return bins;
}

absl::StatusOr<std::vector<Level>> ReadLevels(const OpDesc& op,
                                              const Shape& x) {
  PD_RETURN_IF_ERROR(CheckHeight(op));
  if (x.size() != 4 || x[2] < 1 || x[3] < 1)
    return InvalidArgument("'X' has shape %s; expected images of rank 4",
                           ToString(x));
  const int64_t row = x[1] * BinsOf(op);
  std::vector<Level> levels;
  int64_t offset = 0;
  for (int32_t p = 0; p < op.Attr<int32_t>("pyramid_height"); ++p) {
    const int64_t bins = int64_t{1} << p;
    std::vector<int32_t> kernel, padding;
    for (size_t axis : {2, 3}) {
      const int64_t k = (x[axis] + bins - 1) / bins;
      kernel.push_back(static_cast<int32_t>(k));
      padding.push_back(static_cast<int32_t>((k * bins - x[axis] + 1) / 2));
    }
    OpDesc pool;
    pool.attrs["pooling_type"] = op.Attr<std::string>("pooling_type");
    pool.attrs["ksize"] = kernel;
    pool.attrs["strides"] = kernel;
    pool.attrs["paddings"] = padding;
    PD_ASSIGN_OR_RETURN(const PoolGeometry g, ReadPool(pool, x));
    Level level{PoolLoops(g), offset};
    if (level.pool.h.out != bins || level.pool.w.out != bins)
      return InvalidArgument("images %s cannot be pooled into %d x %d bins",
                             ToString(x), bins, bins);
    level.pool.out.image = row;
    offset += x[1] * bins * bins;
    levels.push_back(level);
  }
  return levels;
}

absl::StatusOr<Step> BindSpp(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto levels, ReadLevels(context->op(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (const Level& level : levels)
        PoolForward<T>(level.pool, x->data<T>(), out->data<T>() + level.offset);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSppGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (out != nullptr) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(const auto levels, ReadLevels(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(),
                  {x->dim(0), x->dim(1) * BinsOf(context->op())}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      for (const Level& level : levels)
        AddPoolBackward<T>(level.pool, x->data<T>(),
                           dout->data<T>() + level.offset, dx->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferSpp(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(CheckHeight(context->op()));
  if (x.shape.size() != 4)
    return InvalidArgument("'X' has shape %s; expected rank 4",
                           ToString(x.shape));
  const int64_t row = x.shape[1] < 0 ? -1 : x.shape[1] * BinsOf(context->op());
  context->SetOutput("Out", {x.shape[0], row}, x.dtype);
  return absl::OkStatus();
}

void AddSppAttrs(OpDef* def) {
  def->RequiredAttr("pyramid_height", AttrType::kInt)
      .RequiredAttr("pooling_type", AttrType::kString);
}

}  // namespace

absl::Status RegisterSpp(OpRegistry* registry) {
  OpDef spp("spp");
  spp.Input("X").Output("Out");
  AddSppAttrs(&spp);
  spp.Infer(InferSpp).Reference(BindSpp);
  spp.Grad(GradSpec{"spp_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(spp)));

  OpDef grad("spp_grad");
  grad.Input("X").OptionalInput("Out").Input("Out@GRAD").Output("X@GRAD");
  AddSppAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSppGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
