// SPDX-License-Identifier: Apache-2.0
// Tensors put together along an axis, and taken apart:
//   concat: X[0], X[1], ... one after the other along `axis`
//   split: the reverse, into `num` equal parts or parts of `sections` (one of
//     them may be -1: what is left)
//   stack: along a new axis; unstack, unbind: the reverse
// Each is the gradient of another. concat_grad and stack_grad are split and
// unstack under PaddlePaddle's slots; the gradient of split is a concat op,
// that of unbind a stack op. The axis and the sections may come from tensors.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/row_copies.h"
#include "libcore/ops/manipulation/open_ints.h"
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

// Part i's bytes of rows [begin, end) lie `offset` into those of the joined
// tensor, which are `total` long.
void CopyConcatPart(const Parts& p, size_t i, size_t offset, size_t total,
                    bool join, int64_t begin, int64_t end) {
  const size_t width = p.widths[i];
  char* const part = p.tensors[i]->data<char>();
  char* const joined = p.joined->data<char>() + offset;
  const auto in_part = [=](int64_t row) {
    return part + static_cast<size_t>(row) * width;
  };
  const auto in_joined = [=](int64_t row) {
    return joined + static_cast<size_t>(row) * total;
  };
  if (join)
    CopyRows(begin, end, width, in_joined, in_part);
  else
    CopyRows(begin, end, width, in_part, in_joined);
}

// The step that copies parts to the joined tensor, or back: a block of rows of
// every part after the other, so that the joined rows stay in the cache.
Step CopyParts(const Parts& p, bool join) {
  size_t total = 0;
  for (size_t width : p.widths) total += width;
  const int64_t block = static_cast<int64_t>(2048 / (total + 1)) + 1;
  return [p, join, total, block](const RunContext&) {
    const auto grain = static_cast<int64_t>(65536 / (total + 1)) + 1;
    ParallelFor(p.outer, grain, [&](int64_t first, int64_t last) {
      for (int64_t begin = first; begin < last; begin += block) {
        const int64_t end = std::min(begin + block, last);
        size_t offset = 0;
        for (size_t i = 0; i < p.tensors.size(); ++i) {
          if (p.tensors[i] != nullptr && p.widths[i] > 0)
            CopyConcatPart(p, i, offset, total, join, begin, end);
          offset += p.widths[i];
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

// Nothing when a tensor gives the axis and is not known yet.
absl::StatusOr<std::optional<size_t>> ConcatAxisOf(const InferContext& context,
                                                   size_t rank) {
  int64_t axis = context.op().Attr<int32_t>("axis");
  if (context.HasInput("AxisTensor")) {
    const TensorMeta& meta = context.Input("AxisTensor");
    if (meta.value == nullptr) return std::optional<size_t>();
    const std::vector<int64_t> value = IntsOf(*meta.value);
    if (value.size() != 1)
      return InvalidArgument("AxisTensor has %d elements; expected one",
                             value.size());
    axis = value[0];
  }
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, rank));
  return std::optional<size_t>(static_cast<size_t>(at));
}

// Sequences one after the other: the offsets of `more` go on where those of
// `lod` end. Without effect when one is not known.
void AppendLoD(const LoD& more, LoD* lod) {
  if (more.size() != lod->size()) {
    lod->clear();
    return;
  }
  for (size_t level = 0; level < more.size(); ++level) {
    std::vector<uint64_t>& offsets = (*lod)[level];
    const uint64_t base = offsets.back();
    for (size_t i = 1; i < more[level].size(); ++i)
      offsets.push_back(base + more[level][i]);
  }
}

absl::Status InferConcat(InferContext* context) {
  const TensorMeta& first = context->Input("X");
  PD_ASSIGN_OR_RETURN(const auto axis,
                      ConcatAxisOf(*context, first.shape.size()));
  TensorMeta out = first;
  out.value = nullptr;
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    bool fits = x.shape.size() == out.shape.size() && x.dtype == out.dtype;
    for (size_t d = 0; fits && axis.has_value() && d < x.shape.size(); ++d) {
      int64_t& extent = out.shape[d];
      if (d == *axis) {
        extent = extent < 0 || x.shape[d] < 0 ? -1 : extent + x.shape[d];
      } else {
        fits = extent < 0 || x.shape[d] < 0 || extent == x.shape[d];
        extent = std::max(extent, x.shape[d]);
      }
    }
    if (!fits)
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected equal dtypes and extents "
          "but for the axis",
          Name(first.dtype), ToString(first.shape), i, Name(x.dtype),
          ToString(x.shape));
    if (axis == size_t{0}) AppendLoD(x.lod, &out.lod);
  }
  if (!axis.has_value()) out.shape.assign(out.shape.size(), -1);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// True when the parts make up the joined tensor along axis `d`.
bool JoinAlong(const Shape& joined, const std::vector<Shape>& parts, size_t d) {
  int64_t sum = 0;
  for (const Shape& part : parts) {
    if (part.size() != joined.size()) return false;
    for (size_t i = 0; i < joined.size(); ++i)
      if (i != d && part[i] != joined[i]) return false;
    sum += part[d];
  }
  return sum == joined[d];
}

// Sets the copy of parts of these shapes. Where a tensor gives the axis, it is
// the one along which they add up.
absl::Status SetParts(const BindContext& context,
                      const std::vector<Shape>& shapes, Parts* p) {
  const Shape& joined = p->joined->shape();
  size_t axis = 0;
  if (context.Input("AxisTensor") == nullptr) {
    PD_ASSIGN_OR_RETURN(
        const int at,
        NormalizeAxis(context.op().Attr<int32_t>("axis"), joined.size()));
    axis = static_cast<size_t>(at);
  } else {
    while (axis < joined.size() && !JoinAlong(joined, shapes, axis)) ++axis;
  }
  if (axis >= joined.size() || !JoinAlong(joined, shapes, axis))
    return InvalidArgument(
        "%d parts, the first of shape %s, do not make up %s "
        "along axis %d",
        shapes.size(), shapes.empty() ? "" : ToString(shapes[0]),
        ToString(joined), axis);
  size_t inner = 0;
  SetExtents(joined, axis, p, &inner);
  for (const Shape& shape : shapes)
    p->widths.push_back(static_cast<size_t>(shape[axis]) * inner);
  for (const Tensor* t : p->tensors)
    if (t != nullptr && t->dtype() != p->joined->dtype())
      return InvalidArgument("a part is %s; the whole is %s", Name(t->dtype()),
                             Name(p->joined->dtype()));
  return absl::OkStatus();
}

void ForgetTensors(BindContext* context) {
  for (const char* slot : {"AxisTensor", "SectionsTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
}

absl::StatusOr<Step> BindConcat(BindContext* context) {
  Parts p;
  p.joined = context->Output("Out");
  ForgetTensors(context);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    p.tensors.push_back(context->Input("X", i));
    shapes.push_back(p.tensors[i]->shape());
  }
  PD_RETURN_IF_ERROR(SetParts(*context, shapes, &p));
  return CopyParts(p, true);
}

absl::StatusOr<Step> BindConcatGrad(BindContext* context) {
  Parts p;
  p.joined = context->Input("Out@GRAD");
  ForgetTensors(context);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    context->NoBuffer(x);
    p.tensors.push_back(context->Output("X@GRAD", i));
    shapes.push_back(x->shape());
  }
  PD_RETURN_IF_ERROR(SetParts(*context, shapes, &p));
  return CopyParts(p, false);
}

// The gradient of concat_grad: the parts' gradients joined, zeros for those
// that nobody asked for.
absl::StatusOr<std::vector<OpDesc>> ConcatGradGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  const std::string& dout = request.op.In("Out@GRAD");
  if (!request.needs_grad(dout)) return ops;
  OpDesc join;
  join.type = "concat";
  join.attrs["axis"] = request.op.Attr<int32_t>("axis");
  const auto& xs = request.op.Input("X");
  const auto& dxs = request.op.Output("X@GRAD");
  std::vector<std::string> parts;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (i < dxs.size() && dxs[i] != kEmptyVar) {
      parts.push_back(GradName(dxs[i]));
      continue;
    }
    OpDesc zeros;
    zeros.type = "fill_any_like";
    zeros.attrs["value"] = 0.0f;
    zeros.attrs["dtype"] = int32_t{-1};
    zeros.SetInput("X", {xs[i]});
    parts.push_back(absl::StrCat(dout, "@ZEROS@", i));
    zeros.SetOutput("Out", {parts.back()});
    ops.push_back(std::move(zeros));
  }
  join.SetInput("X", std::move(parts));
  if (!request.op.Input("AxisTensor").empty())
    join.SetInput("AxisTensor", request.op.Input("AxisTensor"));
  join.SetOutput("Out", {GradName(dout)});
  ops.push_back(std::move(join));
  return ops;
}

// The extents of split's parts along the axis; -1: not known yet.
absl::StatusOr<Shape> Sections(const InferContext& context, int64_t extent) {
  const size_t count = context.OutputCount("Out");
  const auto asked =
      RequestedOpenInts(context, "", "SectionsTensorList", "sections");
  if (!asked.has_value()) return Shape(count, -1);
  if (asked->empty()) {
    const int64_t num = context.Attr<int32_t>("num");
    if (num < 1 || static_cast<size_t>(num) != count)
      return InvalidArgument("attr 'num' is %d; there are %d outputs", num,
                             count);
    if (extent >= 0 && extent % num != 0)
      return InvalidArgument("%d does not split into %d equal parts", extent,
                             num);
    return Shape(count, extent < 0 ? -1 : extent / num);
  }
  int64_t sum = 0, open = 0;
  bool known = extent >= 0;
  Shape sections;
  for (const auto& section : *asked) {
    known = known && section.has_value();
    const int64_t s = section.value_or(-1);
    if (s >= 0 && __builtin_add_overflow(sum, s, &sum)) sum = INT64_MAX;
    if (s < 0 && section.has_value()) ++open;
    sections.push_back(std::max<int64_t>(s, -1));
  }
  if (sections.size() != count || open > 1 ||
      (known && (sum > extent || (open == 0 && sum != extent))))
    return InvalidArgument(
        "attr 'sections' is %s; it splits an extent of %d into %d outputs",
        ToString(sections), extent, count);
  if (known)
    for (int64_t& s : sections) s = s < 0 ? extent - sum : s;
  return sections;
}

absl::Status InferSplit(InferContext* context) {
  TensorMeta part = context->Input("X");
  part.value = nullptr;
  PD_ASSIGN_OR_RETURN(const auto axis,
                      ConcatAxisOf(*context, part.shape.size()));
  if (!axis.has_value() || *axis == 0) {
    part.lod.clear();
    part.lod_level = 0;
  }
  if (!axis.has_value()) {
    part.shape.assign(part.shape.size(), -1);
    for (size_t i = 0; i < context->OutputCount("Out"); ++i)
      context->SetOutput("Out", part, i);
    return absl::OkStatus();
  }
  int64_t& extent = part.shape[*axis];
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
  ForgetTensors(context);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->OutputCount("Out"); ++i) {
    Tensor* part = context->Output("Out", i);
    if (part == nullptr)
      return Unimplemented("output %d of split is not wanted", i);
    p.tensors.push_back(part);
    shapes.push_back(part->shape());
  }
  PD_RETURN_IF_ERROR(SetParts(*context, shapes, &p));
  return CopyParts(p, false);
}

absl::Status InferStack(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod_level = 0;
  out.lod.clear();
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
    Tensor* t = part(i);
    if (t != nullptr && (t->dtype() != joined->dtype() ||
                         t->bytes() != static_cast<size_t>(p.outer) * inner))
      return InvalidArgument("part %d is %s %s; the whole is %s %s", i,
                             Name(t->dtype()), ToString(t->shape()),
                             Name(joined->dtype()), ToString(joined->shape()));
    p.tensors.push_back(t);
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
  part.lod.clear();
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
  op.attrs["axis"] = request.op.Attr<int32_t>("axis");
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterConcat(OpRegistry* registry) {
  OpDef concat("concat");
  concat.Inputs("X").OptionalInput("AxisTensor").Output("Out");
  concat.With(Trait::kShapeArithmetic)
      .Attr("axis", int32_t{0})
      .Infer(InferConcat)
      .Reference(BindConcat);
  concat.Grad(GradSpec{"concat_grad", {"X", "AxisTensor"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(concat)));

  OpDef concat_grad("concat_grad");
  concat_grad.Inputs("X").OptionalInput("AxisTensor").Input("Out@GRAD");
  concat_grad.Outputs("X@GRAD").Attr("axis", int32_t{0});
  concat_grad.Grad(GradMaker(ConcatGradGrad));
  concat_grad.Infer(InferGradLikeInput).Reference(BindConcatGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(concat_grad)));

  OpDef split("split");
  split.Input("X").OptionalInput("AxisTensor").Outputs("Out");
  split.OptionalInputs("SectionsTensorList").Attr("axis", int32_t{0});
  split.Attr("sections", std::vector<int32_t>()).Attr("num", int32_t{0});
  split.With(Trait::kShapeArithmetic)
      .Infer(InferSplit)
      .Grad(GradMaker(JoinGrad))
      .Reference(BindSplit);
  PD_RETURN_IF_ERROR(registry->Add(std::move(split)));

  OpDef stack("stack");
  stack.Inputs("X").Output("Y").Attr("axis", int32_t{0});
  stack.With(Trait::kShapeArithmetic).Infer(InferStack).Reference(BindStack);
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
  unstack.With(Trait::kShapeArithmetic)
      .Infer(InferUnstack)
      .Reference(BindUnstack);
  unstack.Grad(GradSpec{"unstack_grad", {}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(unstack)));

  OpDef unstack_grad("unstack_grad");
  unstack_grad.Inputs("Y@GRAD").Output("X@GRAD");
  unstack_grad.Attr("axis", int32_t{0}).Attr("num", int32_t{0}).NoGrad();
  unstack_grad.Infer(InferUnstackGrad).Reference(BindUnstackGrad);
  return registry->Add(std::move(unstack_grad));
}

}  // namespace pd
