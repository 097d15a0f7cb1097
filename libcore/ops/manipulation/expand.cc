// SPDX-License-Identifier: Apache-2.0
// X repeated:
//   expand_v2: to `shape`, aligned at the right; -1 keeps X's extent
//   expand_as_v2: to the shape of Y, or target_shape
//   tile: repeat_times along each axis, aligned at the right
//   expand: expand_times along each axis (the first version of tile)
// X@GRAD = Out@GRAD summed over the repetitions. Shapes and times may come
// from tensors.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/manipulation/open_ints.h"
#include "libcore/ops/manipulation/repeat.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Slots and attribute that say how far.
struct ExpandRequest {
  const char *tensor, *list, *attr;
};
ExpandRequest ExpandRequestOf(const std::string& type) {
  if (type.rfind("expand_v2", 0) == 0)
    return {"Shape", "expand_shapes_tensor", "shape"};
  if (type.rfind("expand_as_v2", 0) == 0) return {"", "", "target_shape"};
  if (type.rfind("tile", 0) == 0)
    return {"RepeatTimes", "repeat_times_tensor", "repeat_times"};
  return {"ExpandTimes", "expand_times_tensor", "expand_times"};
}

// The requested numbers, or as many unknown ones as X has axes.
OpenInts AskedOf(const InferContext& context) {
  const ExpandRequest request = ExpandRequestOf(context.op().type);
  if (auto asked = RequestedOpenInts(context, request.tensor, request.list,
                                     request.attr))
    return *std::move(asked);
  return OpenInts(context.Input("X").shape.size());
}

absl::Status InferExpand(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod.clear();
  out.lod_level = 0;
  OpenInts asked;
  if (context->HasInput("Y")) {
    for (int64_t extent : context->Input("Y").shape) {
      asked.emplace_back();
      if (extent >= 0) asked.back() = extent;
    }
  } else {
    asked = AskedOf(*context);
  }
  if (asked.size() < out.shape.size())
    return InvalidArgument("X has shape %s; it cannot expand to %d axes",
                           ToString(out.shape), asked.size());
  const Shape x = PaddedShape(out.shape, asked.size());
  Shape shape;
  for (size_t i = 0; i < asked.size(); ++i) {
    // An extent other than 1 stays, whatever is asked for.
    int64_t extent = asked[i].value_or(x[i] == 1 ? -1 : x[i]);
    if (asked[i].has_value() && extent == -1) extent = x[i];
    if (extent < -1 ||
        (extent >= 0 && x[i] >= 0 && x[i] != 1 && extent != x[i]))
      return InvalidArgument(
          "X has shape %s; axis %d has extent %d, which does not expand to %d",
          ToString(out.shape), i, x[i], extent);
    shape.push_back(extent);
  }
  out.shape = std::move(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferTile(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  OpenInts times = AskedOf(*context);
  const size_t rank = std::max(times.size(), out.shape.size());
  times.insert(times.begin(), rank - times.size(), int64_t{1});
  out.shape = PaddedShape(out.shape, rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t& extent = out.shape[i];
    if (times[i].has_value() && *times[i] < 1)
      return InvalidArgument("axis %d is repeated %d times; expected 1 or more",
                             i, *times[i]);
    if (extent < 0 || !times[i].has_value())
      extent = -1;
    else if (__builtin_mul_overflow(extent, *times[i], &extent))
      return OutOfRange("axis %d repeated %d times overflows", i, *times[i]);
  }
  if (times.empty() || !times[0].has_value() || *times[0] != 1) {
    out.lod.clear();
    out.lod_level = 0;
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

void ForgetShapes(BindContext* context) {
  const ExpandRequest request = ExpandRequestOf(context->op().type);
  for (const char* slot : {request.tensor, request.list, "Y"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
}

absl::StatusOr<Step> BindExpand(BindContext* context) {
  ForgetShapes(context);
  Tensor* x = context->Input("X");
  return RepeatStep(context, x, x->shape(), context->Output("Out"));
}

absl::StatusOr<Step> BindExpandGrad(BindContext* context) {
  ForgetShapes(context);
  context->NoBuffer(context->Input("X"));
  Tensor* dx = context->Output("X@GRAD");
  return SumRepeatsStep(context, context->Input("Out@GRAD"), dx, dx->shape());
}

// As ForwardAgain, to the shape of Out@GRAD.
absl::StatusOr<std::vector<OpDesc>> ExpandAsAgain(const GradRequest& request) {
  PD_ASSIGN_OR_RETURN(auto ops,
                      ForwardAgain("expand_as_v2", "X", "Out")(request));
  for (OpDesc& op : ops) op.SetInput("Y", {request.op.In("Out@GRAD")});
  return ops;
}

absl::Status AddExpandOp(OpRegistry* registry, const std::string& type,
                         InferFn infer) {
  const ExpandRequest request = ExpandRequestOf(type);
  const bool as = type == "expand_as_v2";
  const auto add_arguments = [&](OpDef* op) {
    if (as) {
      op->OptionalInput("Y");
    } else {
      op->OptionalInput(request.tensor).OptionalInputs(request.list);
    }
    op->Attr(request.attr, std::vector<int32_t>());
  };
  OpDef op(type);
  op.Input("X").Output("Out").Infer(infer).Reference(BindExpand);
  op.With(Trait::kShapeArithmetic);
  add_arguments(&op);
  GradSpec spec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}};
  if (!as) spec.inputs = {"X", request.tensor, request.list};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  add_arguments(&grad);
  grad.Infer(InferGradLikeInput).Reference(BindExpandGrad);
  if (as)
    grad.Grad(GradMaker(ExpandAsAgain));
  else
    grad.Grad(ForwardAgain(type, "X", "Out", {request.tensor, request.list}));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterExpand(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddExpandOp(registry, "expand_v2", InferExpand));
  PD_RETURN_IF_ERROR(AddExpandOp(registry, "expand_as_v2", InferExpand));
  PD_RETURN_IF_ERROR(AddExpandOp(registry, "tile", InferTile));
  return AddExpandOp(registry, "expand", InferTile);
}

}  // namespace pd
