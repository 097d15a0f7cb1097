// SPDX-License-Identifier: Apache-2.0
// Tensors put together along an axis, and taken apart:
//   concat: X[0], X[1], ... one after the other along `axis`
//   split: the reverse, into `num` equal parts or parts of `sections` (one of
//     them may be -1: what is left)
//   stack: along a new axis; unstack, unbind: the reverse
// Each is the gradient of another. concat_grad and stack_grad are split and
// unstack under PaddlePaddle's slots; the gradient of split is a concat op,
// that of unbind a stack op. The axis and the sections may come from tensors.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// A joined tensor is [outer, sum of widths]; part i is [outer, width i].
struct Parts {
  std::vector<Tensor*> tensors;  // null: nobody wants it
  std::vector<size_t> widths;    // bytes
  Tensor* joined = nullptr;
  int64_t outer = 1;
};

// The step that copies parts to the joined tensor, or back.
Step CopyParts(const Parts& p, bool join) {
  return [p, join](const RunContext&) {
    size_t total = 0;
    for (size_t width : p.widths) total += width;
    const int64_t grain = static_cast<int64_t>(65536 / (total + 1)) + 1;
    ParallelFor(p.outer, grain, [&](int64_t begin, int64_t end) {
      char* at = p.joined->data<char>() + static_cast<size_t>(begin) * total;
      for (int64_t row = begin; row < end; ++row) {
        for (size_t i = 0; i < p.tensors.size(); ++i) {
          const size_t width = p.widths[i];
          if (p.tensors[i] != nullptr && width > 0) {
            char* part =
                p.tensors[i]->data<char>() + static_cast<size_t>(row) * width;
            std::memcpy(join ? at : part, join ? part : at, width);
          }
          at += width;
        }
      }
    });
    return absl::OkStatus();
  };
}

// The extents before and after `axis`.
void SetExtents(const Shape& shape, size_t axis, Parts* p, size_t* inner) {
  p->outer = NumElements(shape, 0, axis);
  *inner = static_cast<size_t>(NumElements(shape, axis + 1, shape.size())) *
           SizeOf(p->joined->dtype());
}

absl::StatusOr<int> AxisOf(const InferContext& context, size_t rank) {
  int64_t axis = context.op().AttrOr<int32_t>("axis", 0);
  if (context.HasInput("AxisTensor")) {
    const TensorMeta& meta = context.Input("AxisTensor");
    if (meta.value == nullptr)
      return Unimplemented(
          "the axis is given by a tensor whose value is not "
          "known when the program is compiled");
    axis = IntsOf(*meta.value).at(0);
  }
  return NormalizeAxis(axis, rank);
}

absl::Status InferConcat(InferContext* context) {
  const TensorMeta& first = context->Input("X");
  PD_ASSIGN_OR_RETURN(const int at, AxisOf(*context, first.shape.size()));
  const size_t axis = static_cast<size_t>(at);
  TensorMeta out = first;
  out.value = nullptr;
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    bool fits = x.shape.size() == out.shape.size() && x.dtype == out.dtype;
    for (size_t d = 0; fits && d < x.shape.size(); ++d) {
      int64_t& extent = out.shape[d];
      if (d == axis) {
        extent = extent < 0 || x.shape[d] < 0 ? -1 : extent + x.shape[d];
      } else {
        fits = extent < 0 || x.shape[d] < 0 || extent == x.shape[d];
        extent = std::max(extent, x.shape[d]);
      }
    }
    if (!fits)
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected equal dtypes and extents "
          "but for axis %d",
          Name(first.dtype), ToString(first.shape), i, Name(x.dtype),
          ToString(x.shape), at);
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// The axis along which the parts' extents add up to the joined one's.
absl::StatusOr<size_t> BoundAxis(const BindContext& context,
                                 const Shape& joined, const Shape& part,
                                 const char* by_tensor) {
  if (context.Input(by_tensor) == nullptr) {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context.op().AttrOr<int32_t>("axis", 0), joined.size()));
    return static_cast<size_t>(axis);
  }
  for (size_t d = 0; d < joined.size(); ++d)
    if (joined[d] != part[d]) return d;
  return size_t{0};  // one part: any axis will do
}

absl::StatusOr<Step> BindConcat(BindContext* context) {
  Parts p;
  p.joined = context->Output("Out");
  const size_t count = context->InputCount("X");
  if (Tensor* t = context->Input("AxisTensor")) context->NoBuffer(t);
  PD_ASSIGN_OR_RETURN(const size_t axis,
                      BoundAxis(*context, p.joined->shape(),
                                context->Input("X")->shape(), "AxisTensor"));
  size_t inner = 0;
  SetExtents(p.joined->shape(), axis, &p, &inner);
  for (size_t i = 0; i < count; ++i) {
    p.tensors.push_back(context->Input("X", i));
    p.widths.push_back(static_cast<size_t>(p.tensors[i]->dim(axis)) * inner);
  }
  return CopyParts(p, true);
}

absl::StatusOr<Step> BindConcatGrad(BindContext* context) {
  Parts p;
  p.joined = context->Input("Out@GRAD");
  if (Tensor* t = context->Input("AxisTensor")) context->NoBuffer(t);
  PD_ASSIGN_OR_RETURN(const size_t axis,
                      BoundAxis(*context, p.joined->shape(),
                                context->Input("X")->shape(), "AxisTensor"));
  size_t inner = 0;
  SetExtents(p.joined->shape(), axis, &p, &inner);
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    context->NoBuffer(x);
    p.tensors.push_back(context->Output("X@GRAD", i));
    p.widths.push_back(static_cast<size_t>(x->dim(axis)) * inner);
  }
  return CopyParts(p, false);
}

// The extents of split's parts along the axis.
absl::StatusOr<Shape> Sections(const InferContext& context, int64_t extent) {
  Shape sections = IntsAttr(context.op(), "sections");
  if (const auto given = IntsIn(context, "SectionsTensorList"))
    sections = *given;
  const int64_t count = static_cast<int64_t>(context.OutputCount("Out"));
  if (sections.empty()) {
    const int64_t num = context.Attr<int32_t>("num");
    if (num != count)
      return InvalidArgument("attr 'num' is %d; there are %d outputs", num,
                             count);
    if (extent >= 0 && extent % num != 0)
      return InvalidArgument("%d does not split into %d equal parts", extent,
                             num);
    return Shape(static_cast<size_t>(num), extent < 0 ? -1 : extent / num);
  }
  int64_t sum = 0, open = 0;
  for (int64_t s : sections) s < 0 ? ++open : sum += s;
  if (static_cast<int64_t>(sections.size()) != count || open > 1 ||
      (extent >= 0 && (sum > extent || (open == 0 && sum != extent))))
    return InvalidArgument(
        "attr 'sections' is %s; it splits an extent of %d into %d outputs",
        ToString(sections), extent, count);
  if (extent >= 0)
    for (int64_t& s : sections) s = s < 0 ? extent - sum : s;
  return sections;
}

absl::Status InferSplit(InferContext* context) {
  TensorMeta part = context->Input("X");
  part.value = nullptr;
  PD_ASSIGN_OR_RETURN(const int axis, AxisOf(*context, part.shape.size()));
  int64_t& extent = part.shape[static_cast<size_t>(axis)];
  PD_ASSIGN_OR_RETURN(const Shape sections, Sections(*context, extent));
  for (size_t i = 0; i < sections.size(); ++i) {
    extent = sections[i];
    context->SetOutput("Out", part, i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSplit(BindContext* context) {
  Parts p;
  p.joined = context->Input("X");
  for (const char* slot : {"AxisTensor", "SectionsTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      context->NoBuffer(context->Input(slot, i));
  size_t axis = 0, inner = 0;
  for (size_t i = 0; i < context->OutputCount("Out"); ++i) {
    Tensor* part = context->Output("Out", i);
    if (part == nullptr)
      return Unimplemented("output %d of split is not wanted", i);
    if (i == 0) {
      PD_ASSIGN_OR_RETURN(axis, BoundAxis(*context, p.joined->shape(),
                                          part->shape(), "AxisTensor"));
      SetExtents(p.joined->shape(), axis, &p, &inner);
    }
    p.tensors.push_back(part);
    p.widths.push_back(static_cast<size_t>(part->dim(axis)) * inner);
  }
  return CopyParts(p, false);
}

absl::Status InferStack(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod_level = 0;
  const int64_t count = static_cast<int64_t>(context->InputCount("X"));
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    if (x.dtype != out.dtype || x.shape.size() != out.shape.size() ||
        (x.shape != out.shape && !IsDynamic(x.shape) && !IsDynamic(out.shape)))
      return InvalidArgument("X[0] is %s %s, X[%d] is %s %s; expected the same",
                             Name(out.dtype), ToString(out.shape), i,
                             Name(x.dtype), ToString(x.shape));
  }
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), out.shape.size() + 1));
  out.shape.insert(out.shape.begin() + axis, count);
  context->SetOutput("Y", std::move(out));
  return absl::OkStatus();
}

// The parts of a stacked tensor are equal: [outer, count * width].
absl::StatusOr<Step> CopyStack(BindContext* context, Tensor* joined,
                               size_t count, bool join,
                               const std::function<Tensor*(size_t)>& part) {
  Parts p;
  p.joined = joined;
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), joined->rank()));
  if (joined->dim(static_cast<size_t>(axis)) != static_cast<int64_t>(count))
    return InvalidArgument("%s has extent %d along axis %d; there are %d parts",
                           join ? "the output" : "the input",
                           joined->dim(static_cast<size_t>(axis)), axis, count);
  size_t inner = 0;
  SetExtents(joined->shape(), static_cast<size_t>(axis), &p, &inner);
  for (size_t i = 0; i < count; ++i) {
    p.tensors.push_back(part(i));
    p.widths.push_back(inner);
  }
  return CopyParts(p, join);
}

absl::StatusOr<Step> BindStack(BindContext* context) {
  return CopyStack(context, context->Output("Y"), context->InputCount("X"),
                   true, [&](size_t i) { return context->Input("X", i); });
}

absl::StatusOr<Step> BindStackGrad(BindContext* context) {
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    context->NoBuffer(context->Input("X", i));
  return CopyStack(context, context->Input("Y@GRAD"),
                   context->OutputCount("X@GRAD"), false,
                   [&](size_t i) { return context->Output("X@GRAD", i); });
}

absl::Status InferStackGrad(InferContext* context) {
  const TensorMeta& dy = context->Input("Y@GRAD");
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), dy.shape.size()));
  Shape shape = dy.shape;
  shape.erase(shape.begin() + axis);
  for (size_t i = 0; i < context->OutputCount("X@GRAD"); ++i)
    context->SetOutput("X@GRAD", shape, dy.dtype, i);
  return absl::OkStatus();
}

// unstack writes Y, unbind writes Out.
const char* PartSlot(const OpDesc& op) {
  return op.type == "unstack" ? "Y" : "Out";
}

absl::Status InferUnstack(InferContext* context) {
  TensorMeta part = context->Input("X");
  part.value = nullptr;
  part.lod_level = 0;
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), part.shape.size()));
  part.shape.erase(part.shape.begin() + axis);
  const char* slot = PartSlot(context->op());
  for (size_t i = 0; i < context->OutputCount(slot); ++i)
    context->SetOutput(slot, part, i);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindUnstack(BindContext* context) {
  const char* slot = PartSlot(context->op());
  return CopyStack(context, context->Input("X"), context->OutputCount(slot),
                   false, [&](size_t i) { return context->Output(slot, i); });
}

absl::Status InferUnstackGrad(InferContext* context) {
  const TensorMeta& part = context->Input("Y@GRAD");
  Shape shape = part.shape;
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), shape.size() + 1));
  shape.insert(shape.begin() + axis,
               static_cast<int64_t>(context->InputCount("Y@GRAD")));
  context->SetOutput("X@GRAD", std::move(shape), part.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindUnstackGrad(BindContext* context) {
  return CopyStack(context, context->Output("X@GRAD"),
                   context->InputCount("Y@GRAD"), true,
                   [&](size_t i) { return context->Input("Y@GRAD", i); });
}

// The gradient of split or unbind: an op that joins the parts' gradients.
absl::StatusOr<std::vector<OpDesc>> JoinGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  const bool split = request.op.type == "split";
  OpDesc op;
  op.type = split ? "concat" : "stack";
  std::vector<std::string> parts;
  for (const std::string& name : request.op.Output("Out"))
    parts.push_back(GradName(name));
  op.SetInput("X", std::move(parts));
  if (split && !request.op.Input("AxisTensor").empty())
    op.SetInput("AxisTensor", request.op.Input("AxisTensor"));
  op.SetOutput(split ? "Out" : "Y", {GradName(request.op.In("X"))});
  op.attrs["axis"] = request.op.AttrOr<int32_t>("axis", 0);
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterConcat(OpRegistry* registry) {
  OpDef concat("concat");
  concat.Inputs("X").OptionalInput("AxisTensor").Output("Out");
  concat.Attr("axis", int32_t{0}).Infer(InferConcat).Reference(BindConcat);
  concat.Grad(GradSpec{"concat_grad", {"X", "AxisTensor"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(concat)));

  OpDef concat_grad("concat_grad");
  concat_grad.Inputs("X").OptionalInput("AxisTensor").Input("Out@GRAD");
  concat_grad.Outputs("X@GRAD").Attr("axis", int32_t{0}).NoGrad();
  concat_grad.Infer(InferGradLikeInput).Reference(BindConcatGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(concat_grad)));

  OpDef split("split");
  split.Input("X").OptionalInput("AxisTensor").Outputs("Out");
  split.OptionalInputs("SectionsTensorList").Attr("axis", int32_t{0});
  split.Attr("sections", std::vector<int32_t>()).Attr("num", int32_t{0});
  split.Infer(InferSplit).Grad(GradMaker(JoinGrad)).Reference(BindSplit);
  PD_RETURN_IF_ERROR(registry->Add(std::move(split)));

  OpDef stack("stack");
  stack.Inputs("X").Output("Y").Attr("axis", int32_t{0});
  stack.Infer(InferStack).Reference(BindStack);
  stack.Grad(GradSpec{"stack_grad", {"X"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(stack)));

  OpDef stack_grad("stack_grad");
  stack_grad.OptionalInputs("X").Input("Y@GRAD").Outputs("X@GRAD");
  stack_grad.Attr("axis", int32_t{0}).NoGrad();
  stack_grad.Infer(InferStackGrad).Reference(BindStackGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(stack_grad)));

  OpDef unbind("unbind");
  unbind.Input("X").Outputs("Out").Attr("axis", int32_t{0});
  unbind.Infer(InferUnstack).Grad(GradMaker(JoinGrad)).Reference(BindUnstack);
  PD_RETURN_IF_ERROR(registry->Add(std::move(unbind)));

  OpDef unstack("unstack");
  unstack.Input("X").Outputs("Y");
  unstack.Attr("axis", int32_t{0}).Attr("num", int32_t{0});
  unstack.Infer(InferUnstack).Reference(BindUnstack);
  unstack.Grad(GradSpec{"unstack_grad", {}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(unstack)));

  OpDef unstack_grad("unstack_grad");
  unstack_grad.Inputs("Y@GRAD").Output("X@GRAD");
  unstack_grad.Attr("axis", int32_t{0}).Attr("num", int32_t{0}).NoGrad();
  unstack_grad.Infer(InferUnstackGrad).Reference(BindUnstackGrad);
  return registry->Add(std::move(unstack_grad));
}

}  // namespace pd
