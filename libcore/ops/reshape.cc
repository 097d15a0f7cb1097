// SPDX-License-Identifier: Apache-2.0
// Ops that change a shape and no byte, so they have no step:
//   reshape2: Out has `shape`; 0 keeps X's extent, one -1 is what is left
//   flatten_contiguous_range: axes [start_axis, stop_axis] become one
//   squeeze2: without the extents 1 at `axes` (none given: all of them)
//   unsqueeze2: extents 1 put in at `axes`, one after the other
// X@GRAD is Out@GRAD in X's shape, which the gradient takes from XShape: a
// tensor without elements of shape [0, X's shape].
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

void SetReshaped(InferContext* context, Shape shape) {
  TensorMeta out = context->Input("X");
  Shape x_shape = out.shape;
  x_shape.insert(x_shape.begin(), 0);
  out.value = nullptr;
  // A sequence stays one while its rows stay rows.
  if (shape.empty() || out.shape.empty() || shape[0] != out.shape[0])
    out.lod_level = 0;
  out.shape = std::move(shape);
  context->SetOutput("XShape", std::move(x_shape), out.dtype);
  context->SetOutput("Out", std::move(out));
}

absl::Status InferReshape(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  Shape shape = RequestedInts(*context, "ShapeTensor", "Shape", "shape");
  const bool known =
      !context->HasInput("ShapeTensor") && !context->HasInput("Shape");
  const Shape asked = shape;
  int64_t count = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < x.size()) shape[i] = x[i];
    if (shape[i] < -1 || (asked[i] == 0 && i >= x.size()))
      return InvalidArgument(
          "attr 'shape' is %s; expected extents of 1 or more, one -1, and 0 "
          "only where X of shape %s has an extent",
          ToString(asked), ToString(x));
    if (asked[i] == -1) {
      if (open.has_value() && known)
        return InvalidArgument("attr 'shape' is %s; expected one -1 at most",
                               ToString(asked));
      open = i;
    } else {
      count *= shape[i];
    }
  }
  if (!IsDynamic(x)) {
    const int64_t size = NumElements(x);
    const bool several = std::count(asked.begin(), asked.end(), -1) > 1;
    if (open.has_value() && !several && count > 0 && size % count == 0) {
      shape[*open] = size / count;
      count = size;
    } else if (open.has_value() && size == 0 && count == 0) {
      shape[*open] = 0;
    }
    if (!several && count != size)
      return InvalidArgument("X has %d elements in shape %s; 'shape' is %s",
                             size, ToString(x), ToString(asked));
  }
  SetReshaped(context, std::move(shape));
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
  int64_t flat = 1;
  for (int i = start; i <= stop; ++i)
    flat = flat < 0 || x[i] < 0 ? -1 : flat * x[i];
  Shape shape(x.begin(), x.begin() + start);
  shape.push_back(flat);
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
  const bool by_tensor =
      context->HasInput("AxesTensor") || context->HasInput("AxesTensorList");
  const std::vector<int64_t> axes =
      RequestedInts(*context, "AxesTensor", "AxesTensorList", "axes");
  for (int64_t axis : axes) {
    if (by_tensor && axis == -1) {  // not known yet, or really -1
      shape.push_back(1);
      continue;
    }
    PD_ASSIGN_OR_RETURN(const int i,
                        NormalizeAxis(axis, shape.size() + 1, "axes"));
    shape.insert(shape.begin() + i, 1);
  }
  SetReshaped(context, std::move(shape));
  return absl::OkStatus();
}

// Only shapes of the other inputs were needed, and that is over.
absl::StatusOr<Step> BindReshape(BindContext* context) {
  for (const char* slot :
       {"Shape", "ShapeTensor", "AxesTensor", "AxesTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      context->NoBuffer(context->Input(slot, i));
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->size() != out->size())
    return InvalidArgument("X has %d elements; Out has %d", x->size(),
                           out->size());
  context->Alias(x, out);
  return Step();
}

absl::Status InferReshapeGrad(InferContext* context) {
  const Shape& x = context->Input("XShape").shape;
  if (x.empty()) return InvalidArgument("XShape has no dimensions");
  context->SetOutput("X@GRAD", Shape(x.begin() + 1, x.end()),
                     context->Input("Out@GRAD").dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReshapeGrad(BindContext* context) {
  context->NoBuffer(context->Input("XShape"));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout->size() != dx->size())
    return InvalidArgument("Out@GRAD has %d elements; X had %d", dout->size(),
                           dx->size());
  context->Alias(dout, dx);
  return Step();
}

// Inputs and attributes of an op and of its gradient.
void AddArguments(const std::string& type, OpDef* op) {
  if (type == "reshape2") {
    op->OptionalInput("Shape").OptionalInputs("ShapeTensor");
    op->Attr("shape", std::vector<int32_t>());
  } else if (type == "flatten_contiguous_range") {
    op->Attr("start_axis", int32_t{1}).Attr("stop_axis", int32_t{1});
  } else if (type == "squeeze2") {
    op->Attr("axes", std::vector<int32_t>());
  } else {
    op->OptionalInput("AxesTensor").OptionalInputs("AxesTensorList");
    op->Attr("axes", std::vector<int32_t>());
  }
}

absl::Status AddOp(OpRegistry* registry, const std::string& type,
                   InferFn infer) {
  OpDef op(type);
  op.Input("X").Output("Out").IntermediateOutput("XShape");
  AddArguments(type, &op);
  op.Infer(infer).Reference(BindReshape);
  op.Grad(GradSpec{type + "_grad", {}, {"XShape"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("XShape").Input("Out@GRAD").Output("X@GRAD");
  AddArguments(type, &grad);
  grad.Infer(InferReshapeGrad).NoGrad().Reference(BindReshapeGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterReshape(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp(registry, "reshape2", InferReshape));
  PD_RETURN_IF_ERROR(AddOp(registry, "flatten_contiguous_range", InferFlatten));
  PD_RETURN_IF_ERROR(AddOp(registry, "squeeze2", InferSqueeze));
  return AddOp(registry, "unsqueeze2", InferUnsqueeze);
}

}  // namespace pd
