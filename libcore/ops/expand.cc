// SPDX-License-Identifier: Apache-2.0
// X repeated:
//   expand_v2: to `shape`, aligned at the right; -1 keeps X's extent
//   expand_as_v2: to the shape of Y, or target_shape
//   tile: repeat_times along each axis, aligned at the right
//   expand: expand_times along each axis (the first version of tile)
// X@GRAD = Out@GRAD summed over the repetitions. Shapes and times may come
// from tensors.
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/copy_loop.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/reduce_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Slots and attribute that say how far.
struct Request {
  const char *tensor, *list, *attr;
};
Request RequestOf(const std::string& type) {
  if (type.rfind("expand_v2", 0) == 0)
    return {"Shape", "expand_shapes_tensor", "shape"};
  if (type.rfind("expand_as_v2", 0) == 0) return {"", "", "target_shape"};
  if (type.rfind("tile", 0) == 0)
    return {"RepeatTimes", "repeat_times_tensor", "repeat_times"};
  return {"ExpandTimes", "expand_times_tensor", "expand_times"};
}

Shape Padded(const Shape& shape, size_t rank) {
  Shape padded(rank > shape.size() ? rank - shape.size() : 0, 1);
  padded.insert(padded.end(), shape.begin(), shape.end());
  return padded;
}

absl::Status InferExpand(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  const Request request = RequestOf(context->op().type);
  Shape asked =
      context->HasInput("Y")
          ? context->Input("Y").shape
          : RequestedInts(*context, request.tensor, request.list, request.attr);
  if (asked.size() < out.shape.size())
    return InvalidArgument("X has shape %s; attr 'shape' is %s",
                           ToString(out.shape), ToString(asked));
  // Extents out of tensors that are not known yet are -1 too.
  const bool by_tensor =
      context->HasInput(request.tensor) || context->HasInput(request.list);
  const Shape x = Padded(out.shape, asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] == -1 && !(by_tensor && x[i] == 1)) asked[i] = x[i];
    if (asked[i] >= 0 && x[i] >= 0 && x[i] != 1 && asked[i] != x[i])
      return InvalidArgument(
          "X has shape %s; it does not expand to %s: axis %d has extent %d",
          ToString(out.shape), ToString(asked), i, x[i]);
  }
  out.shape = std::move(asked);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferTile(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  const Request request = RequestOf(context->op().type);
  Shape times =
      RequestedInts(*context, request.tensor, request.list, request.attr);
  const size_t rank = std::max(times.size(), out.shape.size());
  times = Padded(times, rank);
  out.shape = Padded(out.shape, rank);
  for (size_t i = 0; i < rank; ++i)
    out.shape[i] =
        out.shape[i] < 0 || times[i] < 0 ? -1 : out.shape[i] * times[i];
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Out's axes cut in two: how often, and X's extent.
struct Repetition {
  Shape shape;               // [times 0, extent 0, times 1, extent 1, ...]
  std::vector<bool> repeat;  // the times
};

absl::StatusOr<Repetition> RepetitionOf(const Shape& x_shape,
                                        const Shape& out) {
  const Shape x = Padded(x_shape, out.size());
  Repetition r;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t times = x[i] == 0 ? 1 : out[i] / x[i];
    if (times * x[i] != out[i])
      return InvalidArgument("X has shape %s, Out %s; expected multiples",
                             ToString(x_shape), ToString(out));
    r.shape.insert(r.shape.end(), {times, x[i]});
    r.repeat.insert(r.repeat.end(), {true, false});
  }
  return r;
}

void ForgetShapes(BindContext* context) {
  const Request request = RequestOf(context->op().type);
  for (const char* slot : {request.tensor, request.list, "Y"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      context->NoBuffer(context->Input(slot, i));
}

absl::StatusOr<Step> BindExpand(BindContext* context) {
  ForgetShapes(context);
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Repetition r,
                      RepetitionOf(x->shape(), out->shape()));
  if (x->size() == out->size()) {
    context->Alias(x, out);
    return Step();
  }
  Shape extents;
  for (size_t i = 1; i < r.shape.size(); i += 2) extents.push_back(r.shape[i]);
  const auto strides = RowMajorStrides(extents);
  const auto out_strides = RowMajorStrides(r.shape);
  StridedLoop<2> loop;
  for (size_t i = 0; i < r.shape.size(); ++i)
    loop.Add(r.shape[i], {r.repeat[i] ? 0 : strides[i / 2], out_strides[i]});
  return CopyStep(loop, x, out);
}

absl::StatusOr<Step> BindExpandGrad(BindContext* context) {
  ForgetShapes(context);
  context->NoBuffer(context->Input("X"));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Repetition r,
                      RepetitionOf(dx->shape(), dout->shape()));
  if (dx->size() == dout->size()) {
    context->Alias(dout, dx);
    return Step();
  }
  const ReducePlan plan = MakeReducePlan(r.shape, r.repeat);
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([plan, dout, dx](const RunContext&) {
          T* result = dx->data<T>();
          Reduce(plan, dout->data<T>(), SumReducer<T>(),
                 [&](int64_t i, auto total) {
                   result[i] = static_cast<T>(total);
                 });
          return absl::OkStatus();
        });
      });
}

absl::Status AddOp(OpRegistry* registry, const std::string& type,
                   InferFn infer) {
  const Request request = RequestOf(type);
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
  add_arguments(&op);
  GradSpec spec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}};
  if (!as) spec.inputs = {"X", request.tensor, request.list};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  add_arguments(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindExpandGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterExpand(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp(registry, "expand_v2", InferExpand));
  PD_RETURN_IF_ERROR(AddOp(registry, "expand_as_v2", InferExpand));
  PD_RETURN_IF_ERROR(AddOp(registry, "tile", InferTile));
  return AddOp(registry, "expand", InferTile);
}

}  // namespace pd
