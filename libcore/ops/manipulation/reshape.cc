// SPDX-License-Identifier: Apache-2.0
// Ops that change a shape and no byte, so they have no step:
//   reshape2: Out has `shape`; 0 keeps X's extent, one -1 is what is left
//   flatten_contiguous_range: axes [start_axis, stop_axis] become one
//   flatten2: a matrix, the axes before `axis` by those from it on
//   squeeze2: without the extents 1 at `axes` (none given: all of them)
//   unsqueeze2: extents 1 put in at `axes`, one after the other
// X@GRAD is Out@GRAD in X's shape, which the gradient takes from XShape: a
// tensor without elements of shape [0, X's shape]. The first versions (reshape,
// flatten, squeeze, unsqueeze) have no XShape; their gradients look at X.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/manipulation/open_ints.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

void SetReshaped(InferContext* context, Shape shape) {
  TensorMeta out = context->Input("X");
  Shape x_shape = out.shape;
  x_shape.insert(x_shape.begin(), 0);
  out.value = nullptr;
  // A sequence stays one while its rows stay rows.
  if (shape.empty() || out.shape.empty() || shape[0] != out.shape[0]) {
    out.lod_level = 0;
    out.lod.clear();
  }
  out.shape = std::move(shape);
  context->SetOutput("XShape", std::move(x_shape), out.dtype);
  context->SetOutput("Out", std::move(out));
}

absl::Status BadShape(const InferContext& context) {
  return InvalidArgument(
      "'shape' is %s; expected extents of 1 or more, one -1, and 0 only where "
      "X of shape %s has an extent, with as many elements",
      ToString(RequestedInts(context, "ShapeTensor", "Shape", "shape")),
      ToString(context.Input("X").shape));
}

absl::Status InferReshape(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  // ShapeTensor, a list, goes before Shape, which goes before the attribute.
  const auto asked =
      RequestedOpenInts(*context, "ShapeTensor", "Shape", "shape");
  if (!asked.has_value()) {  // not even the rank is known
    const size_t rank = IntsAttr(context->op(), "shape").size();
    SetReshaped(context, Shape(std::max<size_t>(rank, 1), -1));
    return absl::OkStatus();
  }
  Shape shape;
  int64_t count = 1;
  std::optional<size_t> open;
  bool known = !IsDynamic(x);
  for (size_t i = 0; i < asked->size(); ++i) {
    int64_t extent = (*asked)[i].value_or(-1);
    known = known && (*asked)[i].has_value();
    if (extent < -1 || (extent == 0 && i >= x.size() && !x.empty()))
      return BadShape(*context);
    if ((*asked)[i].has_value() && extent == -1) {
      if (open.has_value()) return BadShape(*context);
      open = i;
    }
    if (extent == 0 && i < x.size()) extent = x[i];
    shape.push_back(extent);
    if (extent >= 0 && __builtin_mul_overflow(count, extent, &count))
      return BadShape(*context);
  }
  if (known) {
    const int64_t size = NumElements(x);
    if (open.has_value()) {
      if (count == 0 ? size != 0 : size % count != 0) return BadShape(*context);
      shape[*open] = count == 0 ? 0 : size / count;
    } else if (count != size) {
      return BadShape(*context);
    }
  }
  SetReshaped(context, std::move(shape));
  return absl::OkStatus();
}

// The product of the extents [begin, end); -1 when one is not known.
int64_t Product(const Shape& x, size_t begin, size_t end) {
  int64_t flat = 1;
  for (size_t i = begin; i < end; ++i)
    flat = flat < 0 || x[i] < 0 ? -1 : flat * x[i];
  return flat;
}

// flatten2 and flatten, the first version: a matrix, cut at `axis`.
absl::Status InferFlattenToMatrix(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const int64_t axis = context->Attr<int32_t>("axis");
  if (axis < 0 || axis > static_cast<int64_t>(x.size()))
    return InvalidArgument("attr 'axis' is %d; X has shape %s", axis,
                           ToString(x));
  const size_t at = static_cast<size_t>(axis);
  SetReshaped(context, {Product(x, 0, at), Product(x, at, x.size())});
  return absl::OkStatus();
}

absl::Status InferFlatten(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  if (x.empty()) {
    SetReshaped(context, {1});
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const int start,
                      NormalizeAxis(context->Attr<int32_t>("start_axis"),
                                    x.size(), "start_axis"));
  PD_ASSIGN_OR_RETURN(const int stop,
                      NormalizeAxis(context->Attr<int32_t>("stop_axis"),
                                    x.size(), "stop_axis"));
  if (start > stop)
    return InvalidArgument("attr 'start_axis' is %d; 'stop_axis' is %d", start,
                           stop);
  Shape shape(x.begin(), x.begin() + start);
  shape.push_back(
      Product(x, static_cast<size_t>(start), static_cast<size_t>(stop) + 1));
  shape.insert(shape.end(), x.begin() + stop + 1, x.end());
  SetReshaped(context, std::move(shape));
  return absl::OkStatus();
}

absl::Status InferSqueeze(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const std::vector<int64_t> axes = IntsAttr(context->op(), "axes");
  std::vector<bool> drop(x.size(), axes.empty());
  for (int64_t axis : axes) {
    if (x.empty() && (axis == 0 || axis == -1)) continue;
    PD_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, x.size(), "axes"));
    drop[static_cast<size_t>(i)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i) {
    // An extent that is named and not known yet is taken to be 1.
    if (drop[i] && (x[i] == 1 || (x[i] < 0 && !axes.empty()))) continue;
    shape.push_back(x[i]);
  }
  SetReshaped(context, std::move(shape));
  return absl::OkStatus();
}

absl::Status InferUnsqueeze(InferContext* context) {
  Shape shape = context->Input("X").shape;
  const auto axes =
      RequestedOpenInts(*context, "AxesTensor", "AxesTensorList", "axes");
  const size_t rank = shape.size() + (axes.has_value() ? axes->size() : 1);
  for (size_t i = 0; axes.has_value() && i < axes->size(); ++i) {
    const std::optional<int64_t> axis = (*axes)[i];
    if (!axis.has_value()) {
      SetReshaped(context, Shape(rank, -1));
      return absl::OkStatus();
    }
    PD_ASSIGN_OR_RETURN(const int at,
                        NormalizeAxis(*axis, shape.size() + 1, "axes"));
    shape.insert(shape.begin() + at, 1);
  }
  if (!axes.has_value()) shape.assign(rank, -1);
  SetReshaped(context, std::move(shape));
  return absl::OkStatus();
}

// Only shapes of the other inputs were needed, and that is over.
absl::StatusOr<Step> BindReshape(BindContext* context) {
  for (const char* slot :
       {"Shape", "ShapeTensor", "AxesTensor", "AxesTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->size() != out->size())
    return InvalidArgument("X has %d elements; Out has %d", x->size(),
                           out->size());
  context->Alias(x, out);
  return Step();
}

absl::Status InferReshapeGrad(InferContext* context) {
  if (context->HasInput("X")) return InferGradLikeInput(context);
  const Shape& x = context->Input("XShape").shape;
  if (x.empty()) return InvalidArgument("XShape has no dimensions");
  context->SetOutput("X@GRAD", Shape(x.begin() + 1, x.end()),
                     context->Input("Out@GRAD").dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReshapeGrad(BindContext* context) {
  for (const char* slot : {"X", "XShape", "Out"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout->size() != dx->size())
    return InvalidArgument("Out@GRAD has %d elements; X had %d", dout->size(),
                           dx->size());
  context->Alias(dout, dx);
  return Step();
}

// The second gradient of reshape2: DDX in the shape of DOut.
absl::Status InferReshapeGradGrad(InferContext* context) {
  context->SetOutput("DDOut", context->Input("DOut").shape,
                     context->Input("DDX").dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReshapeGradGrad(BindContext* context) {
  context->NoBuffer(context->Input("DOut"));
  Tensor* ddx = context->Input("DDX");
  Tensor* ddout = context->Output("DDOut");
  if (ddx->size() != ddout->size())
    return InvalidArgument("DDX has %d elements; DOut has %d", ddx->size(),
                           ddout->size());
  context->Alias(ddx, ddout);
  return Step();
}

absl::StatusOr<std::vector<OpDesc>> ReshapeGradGrad(
    const GradRequest& request) {
  std::vector<OpDesc> ops;
  const std::string& dout = request.op.In("Out@GRAD");
  if (!request.needs_grad(dout)) return ops;
  OpDesc op;
  op.type = "reshape2_grad_grad";
  op.SetInput("DOut", {dout});
  op.SetInput("DDX", {GradName(request.op.Out("X@GRAD"))});
  op.SetOutput("DDOut", {GradName(dout)});
  ops.push_back(std::move(op));
  return ops;
}

// The op reads DOut for its shape alone: going back, that is DDX's.
absl::StatusOr<std::vector<OpDesc>> ReshapeBack(const GradRequest& request) {
  std::vector<OpDesc> ops;
  const std::string& ddx = request.op.In("DDX");
  if (!request.needs_grad(ddx)) return ops;
  OpDesc op;
  op.type = request.op.type;
  op.SetInput("DOut", {ddx});
  op.SetInput("DDX", {GradName(request.op.Out("DDOut"))});
  op.SetOutput("DDOut", {GradName(ddx)});
  ops.push_back(std::move(op));
  return ops;
}

struct ReshapeKind {
  const char* type;
  bool x_shape;  // false: the first version, whose gradient reads X
  InferFn infer;
};

// Inputs and attributes of an op and of its gradient.
void AddReshapeArguments(const std::string& type, OpDef* op) {
  const std::vector<int32_t> none;
  if (type == "reshape2" || type == "reshape")
    op->OptionalInput("Shape")
        .OptionalInputs("ShapeTensor")
        .Attr("shape", none);
  else if (type == "flatten_contiguous_range")
    op->Attr("start_axis", int32_t{1}).Attr("stop_axis", int32_t{1});
  else if (type == "flatten2" || type == "flatten")
    op->Attr("axis", int32_t{1});
  else if (type == "squeeze2" || type == "squeeze")
    op->Attr("axes", none);
  else
    op->OptionalInput("AxesTensor")
        .OptionalInputs("AxesTensorList")
        .Attr("axes", none);
}

absl::Status AddReshapeOp(OpRegistry* registry, const ReshapeKind& kind) {
  const std::string type = kind.type;
  OpDef op(type);
  op.Input("X").Output("Out");
  if (kind.x_shape) op.IntermediateOutput("XShape");
  AddReshapeArguments(type, &op);
  op.Infer(kind.infer).Reference(BindReshape);
  op.With(Trait::kShapeArithmetic);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (kind.x_shape)
    spec.outputs = {"XShape"};
  else
    spec.inputs = {"X"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input(kind.x_shape ? "XShape" : "X").Input("Out@GRAD").Output("X@GRAD");
  if (!kind.x_shape) grad.OptionalInput("Out");
  AddReshapeArguments(type, &grad);
  grad.Infer(InferReshapeGrad).Reference(BindReshapeGrad);
  if (type == "reshape2")
    grad.Grad(GradMaker(ReshapeGradGrad));
  else
    grad.Grad(
        ForwardAgain(type, "X", "Out",
                     {"AxesTensor", "AxesTensorList", "Shape", "ShapeTensor"}));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterReshape(OpRegistry* registry) {
  for (const ReshapeKind& kind :
       {ReshapeKind{"reshape2", true, InferReshape},
        ReshapeKind{"reshape", false, InferReshape},
        ReshapeKind{"flatten_contiguous_range", true, InferFlatten},
        ReshapeKind{"flatten2", true, InferFlattenToMatrix},
        ReshapeKind{"flatten", false, InferFlattenToMatrix},
        ReshapeKind{"squeeze2", true, InferSqueeze},
        ReshapeKind{"squeeze", false, InferSqueeze},
        ReshapeKind{"unsqueeze2", true, InferUnsqueeze},
        ReshapeKind{"unsqueeze", false, InferUnsqueeze}})
    PD_RETURN_IF_ERROR(AddReshapeOp(registry, kind));

  OpDef second("reshape2_grad_grad");
  second.Input("DOut").Input("DDX").Output("DDOut");
  second.Infer(InferReshapeGradGrad).Grad(GradMaker(ReshapeBack));
  second.Reference(BindReshapeGradGrad);
  return registry->Add(std::move(second));
}

}  // namespace pd
