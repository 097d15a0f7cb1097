// SPDX-License-Identifier: Apache-2.0
// A part of Input: along each of `axes` the elements starts, starts + stride,
// ... before ends. Negative starts and ends count from the end and are clamped
// to it. `decrease_axis`: axes of extent 1 that are dropped.
//   slice: stride 1; strided_slice: `strides`, which may be negative
// Input@GRAD = Out@GRAD where it came from, 0 elsewhere.
// Starts, ends and strides may be given by tensors.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/manipulation/slice_range.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<std::vector<size_t>> SliceAxes(const OpDesc& op, size_t rank) {
  std::vector<size_t> axes;
  for (int64_t axis : IntsAttr(op, "axes")) {
    PD_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank, "axes"));
    axes.push_back(static_cast<size_t>(i));
  }
  return axes;
}

// One of starts, ends and strides, as far as it is known.
struct SliceRequest {
  std::vector<int64_t> values;
  bool known(size_t i) const { return open.empty() || !open[i]; }
  std::vector<bool> open;  // by axis; empty: all are known
};

SliceRequest SliceRequestOf(const InferContext& context,
                            const std::string& what, size_t axes) {
  std::string attr = what;
  attr[0] = 's';
  if (what == "Ends") attr = "ends";
  SliceRequest r;
  r.values = RequestedInts(context, what + "Tensor", what + "TensorList", attr);
  for (const char* kind : {"Tensor", "TensorList"}) {
    const std::string slot = what + kind;
    const size_t count = context.InputCount(slot);
    if (!context.HasInput(slot)) continue;
    r.open.assign(axes, false);
    for (size_t k = 0; k < count; ++k)
      for (size_t i = 0; i < axes; ++i)
        if (context.Input(slot, k).value == nullptr && (count == 1 || k == i))
          r.open[i] = true;
    // Not even their number is known.
    if (count == 1 && axes > 0 && r.open[0]) r.values.assign(axes, 0);
    break;
  }
  return r;
}

// The extent that a slice leaves of one axis; -1: not known yet.
int64_t SlicedExtent(int64_t start, int64_t end, int64_t stride, int64_t extent,
                     bool dropped) {
  if (extent < 0)
    return stride == 1 && start >= 0 && end > start && end - start == 1 ? 1
                                                                        : -1;
  // x[i] is start i, end i + 1; of the last element the end is "0".
  if (dropped && start == -1 && end == 0 && stride == 1) end = extent;
  return RangeOf(start, end, stride, extent).count;
}

absl::StatusOr<std::vector<bool>> DroppedAxes(const OpDesc& op, size_t rank) {
  std::vector<bool> drop(rank, false);
  for (int64_t axis : IntsAttr(op, "decrease_axis")) {
    PD_ASSIGN_OR_RETURN(const int i,
                        NormalizeAxis(axis, rank, "decrease_axis"));
    drop[static_cast<size_t>(i)] = true;
  }
  return drop;
}

absl::Status InferSlice(InferContext* context) {
  TensorMeta out = context->Input("Input");
  out.value = nullptr;
  const OpDesc& op = context->op();
  PD_ASSIGN_OR_RETURN(const auto axes, SliceAxes(op, out.shape.size()));
  PD_ASSIGN_OR_RETURN(const auto drop, DroppedAxes(op, out.shape.size()));
  const SliceRequest starts = SliceRequestOf(*context, "Starts", axes.size());
  const SliceRequest ends = SliceRequestOf(*context, "Ends", axes.size());
  SliceRequest strides = SliceRequestOf(*context, "Strides", axes.size());
  strides.values.resize(axes.size(), 1);
  if (starts.values.size() != axes.size() || ends.values.size() != axes.size())
    return InvalidArgument("%d axes, %d starts, %d ends; expected as many",
                           axes.size(), starts.values.size(),
                           ends.values.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& extent = out.shape[axes[i]];
    if (axes[i] == 0) {
      out.lod.clear();
      out.lod_level = 0;
    }
    if (!starts.known(i) || !ends.known(i) || !strides.known(i)) {
      extent = -1;
      continue;
    }
    if (strides.values[i] == 0)
      return InvalidArgument("attr 'strides' holds a 0");
    extent = SlicedExtent(starts.values[i], ends.values[i], strides.values[i],
                          extent, drop[axes[i]]);
  }
  Shape shape;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i]) shape.push_back(out.shape[i]);
  out.shape = std::move(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// The part of Input that an op takes: known, or read from tensors in every
// step.
class SlicePart {
 public:
  // `out` is the shape without the dropped axes.
  static absl::StatusOr<SlicePart> Of(BindContext* context, const Shape& input,
                                      const Shape& out);

  bool fixed() const { return starts_.fixed() && strides_.fixed(); }

  // A loop over the part and Out, and the offset of the part's first element.
  struct Place {
    StridedLoop<2> loop;
    int64_t offset = 0;
  };
  absl::StatusOr<Place> Find(bool back) const;

 private:
  // Numbers of an attribute or out of tensors.
  struct Ints {
    std::vector<int64_t> attr;
    std::vector<Tensor*> tensors;

    bool fixed() const { return tensors.empty(); }
    std::vector<int64_t> Read() const {
      if (fixed()) return attr;
      std::vector<int64_t> all;
      for (const Tensor* t : tensors)
        for (int64_t v : IntsOf(*t)) all.push_back(v);
      return all;
    }
  };
  static Ints IntsFrom(BindContext* context, const std::string& what);

  Shape input_, full_;  // full_: Out's with the dropped axes as 1
  std::vector<size_t> axes_;
  Ints starts_, strides_;
};

SlicePart::Ints SlicePart::IntsFrom(BindContext* context,
                                    const std::string& what) {
  Ints ints;
  std::string attr = what;
  attr[0] = 's';
  ints.attr = IntsAttr(context->op(), attr);
  for (const char* kind : {"Tensor", "TensorList"})
    for (size_t i = 0; i < context->InputCount(what + kind); ++i)
      if (Tensor* t = context->Input(what + kind, i)) ints.tensors.push_back(t);
  return ints;
}

absl::StatusOr<SlicePart> SlicePart::Of(BindContext* context,
                                        const Shape& input, const Shape& out) {
  SlicePart p;
  p.input_ = input;
  PD_ASSIGN_OR_RETURN(p.axes_, SliceAxes(context->op(), input.size()));
  p.starts_ = IntsFrom(context, "Starts");
  p.strides_ = IntsFrom(context, "Strides");
  for (const char* slot : {"EndsTensor", "EndsTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
  PD_ASSIGN_OR_RETURN(const auto drop,
                      DroppedAxes(context->op(), input.size()));
  size_t next = 0;
  for (size_t i = 0; i < input.size(); ++i)
    p.full_.push_back(drop[i] || next >= out.size() ? 1 : out[next++]);
  if (NumElements(p.full_) != NumElements(out))
    return InvalidArgument("Input has shape %s; Out has %s", ToString(input),
                           ToString(out));
  return p;
}

absl::StatusOr<SlicePart::Place> SlicePart::Find(bool back) const {
  const std::vector<int64_t> starts = starts_.Read();
  std::vector<int64_t> by_axis = strides_.Read();
  by_axis.resize(axes_.size(), 1);
  if (starts.size() != axes_.size())
    return InvalidArgument("there are %d starts for %d axes", starts.size(),
                           axes_.size());
  std::vector<int64_t> strides = RowMajorStrides(input_);
  Place place;
  std::vector<SliceRange> ranges(input_.size());
  for (size_t d = 0; d < input_.size(); ++d) ranges[d].count = input_[d];
  for (size_t i = 0; i < axes_.size(); ++i) {
    const size_t d = axes_[i];
    if (by_axis[i] == 0) return InvalidArgument("a stride is 0");
    ranges[d] = RangeOf(starts[i], by_axis[i] > 0 ? input_[d] : -1, by_axis[i],
                        input_[d]);
    place.offset += ranges[d].start * strides[d];
    strides[d] *= by_axis[i];
  }
  const auto out = RowMajorStrides(full_);
  for (size_t d = 0; d < input_.size(); ++d) {
    if (full_[d] > ranges[d].count && NumElements(full_) > 0)
      return InvalidArgument(
          "Input has shape %s: axis %d has %d elements from %d on; %d are "
          "expected",
          ToString(input_), d, ranges[d].count, ranges[d].start, full_[d]);
    back ? place.loop.Add(full_[d], {out[d], strides[d]})
         : place.loop.Add(full_[d], {strides[d], out[d]});
  }
  return place;
}

// The step that copies the part to `out`, or back into zeros.
absl::StatusOr<Step> CopySlicePart(BindContext* context, Tensor* input,
                                   Tensor* out, bool back) {
  PD_ASSIGN_OR_RETURN(const SlicePart part,
                      SlicePart::Of(context, input->shape(), out->shape()));
  if (input->dtype() != out->dtype())
    return InvalidArgument("Input is %s; Out is %s", Name(input->dtype()),
                           Name(out->dtype()));
  return DispatchBytes(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const auto copy = [input, out, back](const SlicePart::Place& place) {
      if (back && input->bytes() > 0)
        std::memset(input->raw(), 0, input->bytes());
      if (out->size() == 0) return;
      T* at = input->data<T>() + place.offset;
      back ? CopyLoop(place.loop, out->data<T>(), at)
           : CopyLoop(place.loop, at, out->data<T>());
    };
    if (part.fixed()) {
      PD_ASSIGN_OR_RETURN(const SlicePart::Place place, part.Find(back));
      return Step([copy, place](const RunContext&) {
        copy(place);
        return absl::OkStatus();
      });
    }
    return Step([copy, part, back](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const SlicePart::Place place, part.Find(back));
      copy(place);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSlice(BindContext* context) {
  return CopySlicePart(context, context->Input("Input"), context->Output("Out"),
                       false);
}

absl::StatusOr<Step> BindSliceGrad(BindContext* context) {
  context->NoBuffer(context->Input("Input"));
  return CopySlicePart(context, context->Output("Input@GRAD"),
                       context->Input("Out@GRAD"), true);
}

absl::Status AddSliceOp(OpRegistry* registry, const std::string& type) {
  const bool strided = type == "strided_slice";
  const auto add_arguments = [&](OpDef* op) {
    op->Input("Input");
    op->OptionalInput("StartsTensor").OptionalInputs("StartsTensorList");
    op->OptionalInput("EndsTensor").OptionalInputs("EndsTensorList");
    op->RequiredAttr("axes", AttrType::kInts);
    op->Attr("starts", std::vector<int32_t>());
    op->Attr("ends", std::vector<int32_t>());
    op->Attr("infer_flags", std::vector<int32_t>());
    op->Attr("decrease_axis", std::vector<int32_t>());
    if (strided) {
      op->OptionalInput("StridesTensor").OptionalInputs("StridesTensorList");
      op->Attr("strides", std::vector<int32_t>());
    }
  };
  std::vector<std::string> tensors = {"StartsTensor", "StartsTensorList",
                                      "EndsTensor", "EndsTensorList"};
  if (strided) {
    tensors.push_back("StridesTensor");
    tensors.push_back("StridesTensorList");
  }
  GradSpec spec{type + "_grad", {"Input"}, {}, {"Out"}, {"Input"}};
  spec.inputs.insert(spec.inputs.end(), tensors.begin(), tensors.end());
  OpDef op(type);
  op.With(Trait::kShapeArithmetic);
  add_arguments(&op);
  op.Output("Out").Infer(InferSlice).Reference(BindSlice).Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  add_arguments(&grad);
  grad.Input("Out@GRAD").Output("Input@GRAD");
  grad.Infer(InferGradLikeInput).Reference(BindSliceGrad);
  grad.Grad(ForwardAgain(type, "Input", "Out", std::move(tensors)));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterSlice(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddSliceOp(registry, "slice"));
  return AddSliceOp(registry, "strided_slice");
}

}  // namespace pd
