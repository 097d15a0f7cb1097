// SPDX-License-Identifier: Apache-2.0
// Tensors joined, taken apart, cut out, padded, repeated, flipped and rolled:
// each is one strided copy a part (elementwise.cu), after zeros where not every
// element is written. Starts, sections and axes that tensors give stay with the
// CPU.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/manipulation/slice_range.h"

namespace pd::cuda {
namespace {

absl::Status NoConcatTensors(BindContext* context,
                             std::initializer_list<const char*> slots) {
  for (const char* slot : slots)
    if (context->InputCount(slot) > 0)
      return Unimplemented("numbers in '%s'", slot);
  return absl::OkStatus();
}

void ForgetAll(BindContext* context, const char* slot) {
  for (size_t i = 0; i < context->InputCount(slot); ++i)
    if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
}

// A joined tensor is [outer, extent, inner]; a part has `extent` of its own.
struct Parts {
  Tensor* joined;
  std::vector<Tensor*> parts;   // null: nobody wants it
  std::vector<int64_t> widths;  // extent * inner of each
  bool join;
};

absl::StatusOr<Step> CopyParts(DeviceBinding* binding, const Parts& p) {
  int64_t total = 0, start = 0;
  for (int64_t width : p.widths) total += width;
  std::vector<Step> steps;
  for (size_t i = 0; i < p.parts.size(); ++i) {
    Tensor* part = p.parts[i];
    const int64_t width = p.widths[i], first = start;
    start += width;
    if (part == nullptr || part->size() == 0) continue;
    const int64_t outer = part->size() / width;
    if (outer * total != p.joined->size() || part->dtype() != p.joined->dtype())
      return Unimplemented("parts that do not make up the whole");
    StridedCopy copy{p.join ? part : p.joined, p.join ? p.joined : part,
                     part->size()};
    AddExtent<2>(outer, {p.join ? width : total, p.join ? total : width},
                 &copy.walk);
    AddExtent<2>(width, {1, 1}, &copy.walk);
    (p.join ? copy.to_start : copy.from_start) = first;
    PD_ASSIGN_OR_RETURN(Step step, BindCopy(binding, copy));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

// Where an op has its parts and the whole of them.
struct ConcatSlots {
  const char* type;
  const char *whole, *parts;  // slots
  bool join;                  // the whole is an output
  bool stack;                 // the axis is one of the whole alone
};
constexpr ConcatSlots kConcatSlots[] = {
    {"concat", "Out", "X", true, false},
    {"concat_grad", "Out@GRAD", "X@GRAD", false, false},
    {"split", "X", "Out", false, false},
    {"stack", "Y", "X", true, true},
    {"stack_grad", "Y@GRAD", "X@GRAD", false, true},
    {"unstack", "X", "Y", false, true},
    {"unstack_grad", "X@GRAD", "Y@GRAD", true, true},
    {"unbind", "X", "Out", false, true},
};

absl::StatusOr<Step> BindParts(BindContext* context, DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(
      NoConcatTensors(context, {"AxisTensor", "SectionsTensorList"}));
  const ConcatSlots* slots = kConcatSlots;
  while (context->op().type != slots->type) ++slots;
  const bool join = slots->join;
  Parts p{join ? context->Output(slots->whole) : context->Input(slots->whole),
          {},
          {},
          join};
  if (p.joined == nullptr) return Unimplemented("a variable is missing");
  PD_ASSIGN_OR_RETURN(
      const int at,
      NormalizeAxis(context->op().Attr<int32_t>("axis"), p.joined->rank()));
  const size_t axis = static_cast<size_t>(at);
  const int64_t inner =
      NumElements(p.joined->shape(), axis + 1, p.joined->rank());
  // A gradient that nobody wants has the extent of its X.
  const bool grad = context->op().type == "concat_grad";
  const size_t count = join ? context->InputCount(slots->parts)
                            : context->OutputCount(slots->parts);
  for (size_t i = 0; i < count; ++i) {
    Tensor* part = join ? context->Input(slots->parts, i)
                        : context->Output(slots->parts, i);
    const Tensor* shape = grad ? context->Input("X", i) : part;
    if (!slots->stack && (shape == nullptr || shape->rank() <= axis))
      return Unimplemented("part %d is missing", i);
    p.parts.push_back(part);
    p.widths.push_back(slots->stack ? inner : shape->dim(axis) * inner);
  }
  if (slots->parts == absl::string_view("X@GRAD")) ForgetAll(context, "X");
  return CopyParts(binding, p);
}

// `part`, of shape `full`, is some elements of `whole`: from `start` on, with
// `strides`. Copies it out, or back among elements of `fill`.
struct Cut {
  Tensor *whole, *part;
  Shape full;
  std::vector<int64_t> strides;
  int64_t start = 0;
  float fill = 0;
};

absl::StatusOr<Step> CopyCut(DeviceBinding* binding, const Cut& cut,
                             bool back) {
  StridedCopy copy{back ? cut.part : cut.whole, back ? cut.whole : cut.part,
                   cut.part->size()};
  (back ? copy.to_start : copy.from_start) = cut.start;
  const auto rows = RowMajorStrides(cut.full);
  for (size_t d = 0; d < cut.full.size(); ++d) {
    const int64_t strides[2] = {back ? rows[d] : cut.strides[d],
                                back ? cut.strides[d] : rows[d]};
    if (!AddExtent<2>(cut.full[d], strides, &copy.walk)) return TooManyDims();
  }
  std::vector<Step> steps(back ? 1 : 0);
  if (back) {
    PD_ASSIGN_OR_RETURN(steps[0], BindFillStep(binding, cut.fill, cut.whole));
  }
  if (copy.n > 0) {
    PD_ASSIGN_OR_RETURN(Step step, BindCopy(binding, copy));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindSlice(BindContext* context, DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(NoConcatTensors(
      context, {"StartsTensor", "StartsTensorList", "EndsTensor",
                "EndsTensorList", "StridesTensor", "StridesTensorList"}));
  const OpDesc& op = context->op();
  const bool back = context->Output("Input@GRAD") != nullptr;
  Cut cut{back ? context->Output("Input@GRAD") : context->Input("Input"),
          back ? context->Input("Out@GRAD") : context->Output("Out")};
  if (back) context->NoBuffer(context->Input("Input"));
  const Shape& shape = cut.whole->shape();
  cut.full = shape;
  cut.strides = RowMajorStrides(shape);
  const auto axes = IntsAttr(op, "axes"), starts = IntsAttr(op, "starts");
  auto steps = IntsAttr(op, "strides");
  steps.resize(axes.size(), 1);
  if (starts.size() != axes.size()) return Unimplemented("starts of no axis");
  std::vector<bool> drop(shape.size(), false);
  for (int64_t dropped : IntsAttr(op, "decrease_axis")) {
    PD_ASSIGN_OR_RETURN(const int d, NormalizeAxis(dropped, shape.size()));
    drop[static_cast<size_t>(d)] = true;
  }
  // How many there are is inference's knowledge.
  size_t next = 0;
  const Shape& part = cut.part->shape();
  for (size_t d = 0; d < shape.size(); ++d)
    cut.full[d] = drop[d] || next >= part.size() ? 1 : part[next++];
  if (NumElements(cut.full) != cut.part->size())
    return Unimplemented("Out has shape %s", ToString(part));
  for (size_t i = 0; i < axes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axes[i], shape.size()));
    const size_t d = static_cast<size_t>(axis);
    if (steps[i] == 0) return InvalidArgument("a stride is 0");
    const SliceRange range =
        RangeOf(starts[i], steps[i] > 0 ? shape[d] : -1, steps[i], shape[d]);
    if (cut.full[d] > range.count && cut.part->size() > 0)
      return InvalidArgument("Input has shape %s; Out has %s", ToString(shape),
                             ToString(part));
    cut.start += range.start * cut.strides[d];
    cut.strides[d] *= steps[i];
  }
  return CopyCut(binding, cut, back);
}

// pad and pad3d by constants; interp.cc has the other modes.
absl::StatusOr<Step> BindConcatPad(BindContext* context,
                                   DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(NoConcatTensors(context, {"Paddings"}));
  const OpDesc& op = context->op();
  const bool all = op.type == "pad" || op.type == "pad_grad";
  if (!all && op.Attr<std::string>("mode") != "constant")
    return Unimplemented("a mode other than constant");
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* padded = grad ? context->Input("Out@GRAD") : context->Output("Out");
  Tensor* inside = grad ? context->Output("X@GRAD") : context->Input("X");
  if (grad) ForgetAll(context, "X");
  const auto given = IntsAttr(op, "paddings");
  const size_t rank = padded->rank();
  const bool reversed = op.type.rfind("pad3d", 0) == 0;
  const size_t spatial = all ? rank : rank - 2;
  const size_t first =
      all                                                        ? 0
      : absl::EndsWith(op.Attr<std::string>("data_format"), "C") ? 1
                                                                 : 2;
  if (given.size() != 2 * spatial || inside->rank() != rank)
    return Unimplemented("paddings that do not fit");
  Cut cut{padded, inside, inside->shape(), RowMajorStrides(padded->shape())};
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = first + (reversed ? spatial - 1 - i : i);
    if (given[2 * i] < 0 || given[2 * i + 1] < 0 ||
        given[2 * i] + given[2 * i + 1] + inside->dim(d) != padded->dim(d))
      return Unimplemented("negative paddings");
    cut.start += given[2 * i] * cut.strides[d];
  }
  cut.fill = op.Attr<float>(reversed ? "value" : "pad_value");
  return CopyCut(binding, cut, !grad);
}

// X, seen in `shape` with ones before it, lies in Out as often as the extents
// say: every dimension of Out is a repetition and an extent.
absl::StatusOr<Step> BindRepeat(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  for (const char* slot :
       {"Shape", "expand_shapes_tensor", "RepeatTimes", "repeat_times_tensor",
        "Y", "ExpandTimes", "expand_times_tensor"})
    ForgetAll(context, slot);
  const size_t rank = out->rank(), more = rank - x->rank();
  const auto from = RowMajorStrides(x->shape()),
             to = RowMajorStrides(out->shape());
  StridedCopy copy{x, out, out->size()};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = d < more ? 1 : x->dim(d - more);
    if (extent == 0 || out->dim(d) % extent != 0)
      return Unimplemented("%s of %s", ToString(out->shape()),
                           ToString(x->shape()));
    if (!AddExtent<2>(out->dim(d) / extent, {0, to[d] * extent}, &copy.walk) ||
        !AddExtent<2>(extent, {d < more ? 0 : from[d - more], to[d]},
                      &copy.walk))
      return TooManyDims();
  }
  return BindCopy(binding, copy);
}

absl::StatusOr<Step> BindRepeatGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({dout, dx}));
  for (const auto& [slot, names] : context->op().inputs)
    if (slot != "Out@GRAD") ForgetAll(context, slot.c_str());
  const size_t rank = dout->rank(), more = rank - dx->rank();
  const auto strides = RowMajorStrides(dout->shape());
  ReduceShape args{};
  args.factor = 1;
  args.n = dx->size();
  args.m = args.n == 0 ? 0 : dout->size() / args.n;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = d < more ? 1 : dx->dim(d - more);
    if (extent == 0 || dout->dim(d) % extent != 0)
      return Unimplemented("%s of %s", ToString(dout->shape()),
                           ToString(dx->shape()));
    if (!AddExtent<3>(dout->dim(d) / extent, {strides[d] * extent, 0, 0},
                      &args.inner) ||
        !AddExtent<3>(extent, {strides[d], 0, 0}, &args.outer))
      return TooManyDims();
  }
  return BindReduction(context, binding, {"reduce_sum", args, dout, dx});
}

absl::StatusOr<std::vector<size_t>> ReadAxes(const OpDesc& op, size_t rank) {
  std::vector<size_t> axes;
  for (const int64_t axis : IntsAttr(op, "axis")) {
    if (rank == 0) continue;
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    axes.push_back(static_cast<size_t>(a));
  }
  return axes;
}

absl::StatusOr<Step> BindFlip(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto axes, ReadAxes(context->op(), x->rank()));
  if (x->size() == 0) return Unimplemented("no elements");
  StridedCopy copy{x, out, out->size()};
  auto from = RowMajorStrides(x->shape());
  const auto to = from;
  for (const size_t axis : axes) {
    if (from[axis] < 0) continue;  // named twice: flipped once
    copy.from_start += (x->dim(axis) - 1) * from[axis];
    from[axis] = -from[axis];
  }
  for (size_t d = 0; d < from.size(); ++d)
    if (!AddExtent<2>(x->dim(d), {from[d], to[d]}, &copy.walk))
      return TooManyDims();
  return BindCopy(binding, copy);
}

// The shift that each axis of `shape` is rolled by, in [0, extent).
absl::StatusOr<std::vector<int64_t>> ReadShifts(const OpDesc& op,
                                                const Shape& shape) {
  const auto shifts = IntsAttr(op, "shifts");
  std::vector<size_t> axes = {0};
  if (!IntsAttr(op, "axis").empty()) {
    PD_ASSIGN_OR_RETURN(axes, ReadAxes(op, shape.size()));
  }
  if (shifts.size() != axes.size())
    return Unimplemented("%d shifts for %d axes", shifts.size(), axes.size());
  std::vector<int64_t> by_axis(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = shape[axes[i]];
    int64_t& shift = by_axis[axes[i]];
    shift = ((shift + shifts[i] % extent) % extent + extent) % extent;
  }
  return by_axis;
}

// Each axis that is rolled is cut where it wraps: a copy for each box.
absl::StatusOr<Step> BindRoll(BindContext* context, DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(NoConcatTensors(context, {"ShiftsTensor"}));
  const bool back = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(back ? "Out@GRAD" : "X");
  Tensor* to = context->Output(back ? "X@GRAD" : "Out");
  if (back) ForgetAll(context, "X");
  if (from->size() == 0 || from->size() != to->size())
    return Unimplemented("no elements");
  const bool flat = IntsAttr(context->op(), "axis").empty();
  const Shape shape = flat ? Shape{to->size()} : to->shape();
  PD_ASSIGN_OR_RETURN(const auto shifts, ReadShifts(context->op(), shape));
  std::vector<size_t> rolled;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shifts[d] != 0) rolled.push_back(d);
  if (rolled.size() > 4) return Unimplemented("%d axes", rolled.size());
  const auto strides = RowMajorStrides(shape);
  std::vector<Step> steps;
  for (unsigned box = 0; box < 1u << rolled.size(); ++box) {
    StridedCopy copy{from, to, 1};
    Shape extents = shape;
    int64_t unrolled = 0, moved = 0;
    for (size_t i = 0; i < rolled.size(); ++i) {
      const size_t d = rolled[i];
      const bool wraps = (box >> i & 1u) != 0;
      extents[d] = wraps ? shifts[d] : shape[d] - shifts[d];
      (wraps ? unrolled : moved) +=
          (wraps ? shape[d] - shifts[d] : shifts[d]) * strides[d];
    }
    (back ? copy.to_start : copy.from_start) = unrolled;
    (back ? copy.from_start : copy.to_start) = moved;
    for (size_t d = 0; d < shape.size(); ++d) {
      copy.n *= extents[d];
      if (!AddExtent<2>(extents[d], {strides[d], strides[d]}, &copy.walk))
        return TooManyDims();
    }
    PD_ASSIGN_OR_RETURN(Step step, BindCopy(binding, copy));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

}  // namespace

void AddConcat(KernelTable* kernels) {
  for (const ConcatSlots& slots : kConcatSlots)
    AddMove<BindParts>(slots.type, kernels);
  for (const char* type :
       {"slice", "slice_grad", "strided_slice", "strided_slice_grad"})
    AddMove<BindSlice>(type, kernels);
  for (const char* type : {"flip", "reverse"}) AddMove<BindFlip>(type, kernels);
  for (const char* type : {"roll", "roll_grad"})
    AddMove<BindRoll>(type, kernels);
  for (const char* type : {"pad", "pad_grad", "pad3d", "pad3d_grad"})
    AddMove<BindConcatPad>(type, kernels);
  for (const std::string type :
       {"expand", "expand_v2", "expand_as_v2", "tile"}) {
    AddMove<BindRepeat>(type, kernels);
    kernels->Add(type + "_grad", {"cuda", BindRepeatGrad});
  }
}

}  // namespace pd::cuda
