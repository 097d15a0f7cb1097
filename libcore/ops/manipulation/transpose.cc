// SPDX-License-Identifier: Apache-2.0
// transpose2: axis i of Out is axis `axis[i]` of X. transpose is the same
// without XShape.
// X@GRAD: Out@GRAD with the axes put back.
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/common/permute.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<std::vector<size_t>> TransposeAxes(const OpDesc& op,
                                                  size_t rank) {
  const std::vector<int64_t> given = IntsAttr(op, "axis");
  std::vector<size_t> axes;
  std::vector<bool> seen(rank, false);
  for (int64_t axis : given) {
    PD_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank));
    if (seen[static_cast<size_t>(i)])
      return InvalidArgument("attr 'axis' is %s: %d is there twice",
                             ToString(given), axis);
    seen[static_cast<size_t>(i)] = true;
    axes.push_back(static_cast<size_t>(i));
  }
  if (axes.size() != rank)
    return InvalidArgument("attr 'axis' is %s; X has rank %d", ToString(given),
                           rank);
  return axes;
}

absl::Status InferTranspose(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const auto axes,
                      TransposeAxes(context->op(), x.shape.size()));
  Shape shape;
  for (size_t axis : axes) shape.push_back(x.shape[axis]);
  Shape x_shape = x.shape;
  x_shape.insert(x_shape.begin(), 0);
  context->SetOutput("XShape", std::move(x_shape), x.dtype);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTranspose(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto axes, TransposeAxes(context->op(), x->rank()));
  const auto loop = PermuteLoop(x->shape(), axes, false);
  if (loop.row() == loop.size() && loop.row_strides()[0] <= 1) {
    context->Alias(x, out);  // only extents of 1 move
    return Step();
  }
  return CopyStep(loop, x, out);
}

absl::StatusOr<Step> BindTransposeGrad(BindContext* context) {
  for (const char* slot : {"XShape", "X"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const auto axes,
                      TransposeAxes(context->op(), dx->rank()));
  if (dout->size() != dx->size())
    return InvalidArgument("Out@GRAD has shape %s; X had %s",
                           ToString(dout->shape()), ToString(dx->shape()));
  return CopyStep(PermuteLoop(dx->shape(), axes, true), dout, dx);
}

absl::Status InferTransposeGrad(InferContext* context) {
  if (context->HasInput("X")) return InferGradLikeInput(context);
  const Shape& x = context->Input("XShape").shape;
  if (x.empty()) return InvalidArgument("XShape has no dimensions");
  context->SetOutput("X@GRAD", Shape(x.begin() + 1, x.end()),
                     context->Input("Out@GRAD").dtype);
  return absl::OkStatus();
}

absl::Status AddTransposeOp(OpRegistry* registry, const std::string& type,
                            bool with_shape) {
  OpDef op(type);
  op.Input("X").Output("Out").RequiredAttr("axis", AttrType::kInts);
  if (with_shape) op.IntermediateOutput("XShape");
  op.Infer(InferTranspose).Reference(BindTranspose);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (with_shape)
    spec.outputs = {"XShape"};
  else
    spec.inputs = {"X"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input(with_shape ? "XShape" : "X").Input("Out@GRAD").Output("X@GRAD");
  grad.RequiredAttr("axis", AttrType::kInts);
  grad.Infer(InferTransposeGrad).Reference(BindTransposeGrad);
  grad.Grad(ForwardAgain(type, "X", "Out"));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterTranspose(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddTransposeOp(registry, "transpose2", true));
  return AddTransposeOp(registry, "transpose", false);
}

}  // namespace pd
