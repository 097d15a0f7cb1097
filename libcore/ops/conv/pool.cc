// SPDX-License-Identifier: Apache-2.0
// pool2d, pool3d: the maximum or the average of each window of a channel; the
// rules stand in pool_loops.h. An average's count is the window's size inside
// the image (exclusive), else with its padding, but not with what ceil_mode
// adds beyond the padding. adaptive: the `ksize` windows of an axis split it as
// evenly as possible, overlapping where they must.
// An average is linear, so its second gradient is pooling again; as in
// PaddlePaddle a maximum has none.
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/pool_loops.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<PoolGeometry> ReadPoolGeometry(const OpDesc& op,
                                              const Shape& input) {
  const size_t rank = op.type.rfind("pool3d", 0) == 0 ? 5 : 4;
  if (input.size() != rank)
    return InvalidArgument("'X' has shape %s; expected rank %d",
                           ToString(input), rank);
  return ReadPool(op, input);
}

absl::StatusOr<Step> BindPoolForward(BindContext* context, Tensor* x,
                                     Tensor* out) {
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPoolGeometry(context->op(), x->shape()));
  const PoolLoops pool(g);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PoolForward<T>(pool, x->data<T>(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPool(BindContext* context) {
  return BindPoolForward(context, context->Input("X"), context->Output("Out"));
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* out = context->Input("Out");
  if (out != nullptr) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPoolGeometry(context->op(), x->shape()));
  if (!g.max) context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), g.OutputShape()));
  const PoolLoops pool(g);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      AddPoolBackward<T>(pool, x->data<T>(), dout->data<T>(), dx->data<T>());
      return absl::OkStatus();
    });
  });
}

// PaddlePaddle 2.3 and later name the slots of the second gradient differently.
constexpr const char* kSecondIn[] = {"grad_x@GRAD", "X"};
constexpr const char* kSecondOut[] = {"grad_out@GRAD", "Out"};

absl::StatusOr<Step> BindPoolGradGrad(BindContext* context) {
  const bool old = context->Input(kSecondIn[0]) == nullptr;
  Tensor* ddx = context->Input(kSecondIn[old]);
  Tensor* ddout = context->Output(kSecondOut[old]);
  if (ddx == nullptr || ddout == nullptr)
    return InvalidArgument("'%s' or '%s' is missing", kSecondIn[old],
                           kSecondOut[old]);
  return BindPoolForward(context, ddx, ddout);
}

absl::Status InferBetween(InferContext* context, const char* from,
                          const char* to) {
  const TensorMeta& x = context->Input(from);
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPoolGeometry(context->op(), x.shape));
  context->SetOutput(to, g.OutputShape(), x.dtype);
  return absl::OkStatus();
}

absl::Status InferPool(InferContext* context) {
  return InferBetween(context, "X", "Out");
}

absl::Status InferPoolGradGrad(InferContext* context) {
  const bool old = !context->HasInput(kSecondIn[0]);
  if (context->op().Attr<std::string>("pooling_type") != "avg")
    return InvalidArgument("only an average has a second gradient");
  if (!context->HasInput(kSecondIn[old]))
    return InvalidArgument("'%s' is missing", kSecondIn[old]);
  return InferBetween(context, kSecondIn[old], kSecondOut[old]);
}

absl::StatusOr<std::vector<OpDesc>> MakePoolGradGrad(
    const GradRequest& request) {
  const OpDesc& op = request.op;
  const std::string& dout = op.Input("Out@GRAD")[0];
  std::vector<OpDesc> ops;
  if (!request.needs_grad(dout)) return ops;
  if (op.Attr<std::string>("pooling_type") != "avg")
    return Unimplemented("the second gradient of pooling with maxima");
  OpDesc second;
  second.type = "pool2d_double_grad";
  second.attrs = op.attrs;
  second.SetInput(kSecondIn[0], {GradName(op.Output("X@GRAD")[0])});
  second.SetOutput(kSecondOut[0], {GradName(dout)});
  ops.push_back(std::move(second));
  return ops;
}

void AddPoolAttrs(OpDef* def, size_t axes) {
  def->RequiredAttr("pooling_type", AttrType::kString)
      .RequiredAttr("ksize", AttrType::kInts)
      .Attr("strides", std::vector<int32_t>(axes, 1))
      .Attr("paddings", std::vector<int32_t>(axes, 0))
      .Attr("ceil_mode", false)
      .Attr("exclusive", true)
      .Attr("data_format", std::string(axes == 2 ? "NCHW" : "NCDHW"))
      .Attr("global_pooling", false)
      .Attr("adaptive", false)
      .Attr("padding_algorithm", std::string("EXPLICIT"));
}

absl::Status AddPool(OpRegistry* registry, const std::string& type,
                     size_t axes) {
  OpDef pool(type);
  pool.Input("X").Output("Out");
  AddPoolAttrs(&pool, axes);
  pool.Infer(InferPool).Reference(BindPool);
  pool.Grad(GradSpec{type + "_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(pool)));

  OpDef grad(type + "_grad");
  grad.Input("X").OptionalInput("Out").Input("Out@GRAD").Output("X@GRAD");
  AddPoolAttrs(&grad, axes);
  grad.Infer(InferGradLikeInput).Reference(BindPoolGrad);
  axes == 2 ? grad.Grad(GradMaker(MakePoolGradGrad)) : grad.NoGrad();
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterPool(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddPool(registry, "pool2d", 2));
  PD_RETURN_IF_ERROR(AddPool(registry, "pool3d", 3));

  OpDef second("pool2d_double_grad");
  for (const char* slot : kSecondIn) second.OptionalInput(slot);
  for (const char* slot : kSecondOut) second.OptionalOutput(slot);
  AddPoolAttrs(&second, 2);
  second.Infer(InferPoolGradGrad).NoGrad().Reference(BindPoolGradGrad);
  return registry->Add(std::move(second));
}

}  // namespace pd
