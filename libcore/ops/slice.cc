// SPDX-License-Identifier: Apache-2.0
// A part of Input: along each of `axes` the elements starts, starts + stride,
// ... before ends. Negative starts and ends count from the end and are clamped
// to it. `decrease_axis`: axes of extent 1 that are dropped.
//   slice: stride 1; strided_slice: `strides`, which may be negative
// Input@GRAD = Out@GRAD where it came from, 0 elsewhere.
// Starts may be given by tensors: their values are read in every step, the
// shape of Out must follow from what is known when the program is compiled.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/copy_loop.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// One axis of a slice: `count` elements from `start`.
struct Range {
  int64_t start = 0, count = 0;
};

int64_t Clamped(int64_t at, int64_t extent, int64_t low, int64_t high) {
  if (at < 0) at += extent;
  return std::min(std::max(at, low), high);
}

Range RangeOf(int64_t start, int64_t end, int64_t stride, int64_t extent) {
  Range r;
  if (stride > 0) {
    r.start = Clamped(start, extent, 0, extent);
    end = Clamped(end, extent, 0, extent);
    r.count = std::max<int64_t>(0, (end - r.start + stride - 1) / stride);
  } else {
    r.start = Clamped(start, extent, -1, extent - 1);
    // -1 is "to the first element, with it". PaddlePaddle takes an end before
    // that for the first element, without it.
    if (end != -1) end = Clamped(end, extent, 0, extent - 1);
    r.count = std::max<int64_t>(0, (r.start - end - stride - 1) / -stride);
  }
  return r;
}

absl::StatusOr<std::vector<size_t>> Axes(const OpDesc& op, size_t rank) {
  std::vector<size_t> axes;
  for (int64_t axis : IntsAttr(op, "axes")) {
    PD_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank, "axes"));
    axes.push_back(static_cast<size_t>(i));
  }
  return axes;
}

std::vector<int64_t> Strides(const OpDesc& op, size_t count) {
  std::vector<int64_t> strides = IntsAttr(op, "strides");
  strides.resize(count, 1);
  return strides;
}

absl::Status InferSlice(InferContext* context) {
  TensorMeta out = context->Input("Input");
  out.value = nullptr;
  const OpDesc& op = context->op();
  PD_ASSIGN_OR_RETURN(const auto axes, Axes(op, out.shape.size()));
  const auto starts =
      RequestedInts(*context, "StartsTensor", "StartsTensorList", "starts");
  const auto ends =
      RequestedInts(*context, "EndsTensor", "EndsTensorList", "ends");
  const auto strides = Strides(op, axes.size());
  if (starts.size() != axes.size() || ends.size() != axes.size())
    return InvalidArgument("%d axes, %d starts, %d ends; expected as many",
                           axes.size(), starts.size(), ends.size());
  // What a tensor gives and is not known is taken off attr infer_flags -1.
  const auto unknown = [&](const char* tensor, const char* list, size_t i) {
    for (const char* slot : {tensor, list})
      for (size_t k = 0; k < context->InputCount(slot); ++k)
        if (context->Input(slot, k).value == nullptr &&
            (context->InputCount(slot) == 1 || k == i))
          return true;
    return false;
  };
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& extent = out.shape[axes[i]];
    if (strides[i] == 0) return InvalidArgument("attr 'strides' holds a 0");
    if (unknown("StartsTensor", "StartsTensorList", i) ||
        unknown("EndsTensor", "EndsTensorList", i))
      extent = -1;
    else if (extent >= 0)
      extent = RangeOf(starts[i], ends[i], strides[i], extent).count;
    else if (strides[i] == 1 && starts[i] >= 0 && ends[i] - starts[i] == 1)
      extent = 1;
  }
  std::vector<bool> drop(out.shape.size(), false);
  for (int64_t axis : IntsAttr(op, "decrease_axis")) {
    PD_ASSIGN_OR_RETURN(const int i,
                        NormalizeAxis(axis, drop.size(), "decrease_axis"));
    drop[static_cast<size_t>(i)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i]) shape.push_back(out.shape[i]);
  out.shape = std::move(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Where a slice starts: known, or read from tensors in every step.
class Starts {
 public:
  static absl::StatusOr<Starts> Of(BindContext* context, const Shape& input) {
    Starts s;
    s.input_ = input;
    PD_ASSIGN_OR_RETURN(s.axes_, Axes(context->op(), input.size()));
    s.starts_ = IntsAttr(context->op(), "starts");
    for (const char* slot : {"StartsTensor", "StartsTensorList"})
      for (size_t i = 0; i < context->InputCount(slot); ++i)
        s.tensors_.push_back(context->Input(slot, i));
    for (const char* slot :
         {"EndsTensor", "EndsTensorList", "StridesTensor", "StridesTensorList"})
      for (size_t i = 0; i < context->InputCount(slot); ++i)
        context->NoBuffer(context->Input(slot, i));
    s.strides_ = Strides(context->op(), s.axes_.size());
    s.tensor_strides_ = RowMajorStrides(input);
    int64_t given = 0;
    for (const Tensor* t : s.tensors_) {
      given += t->size();
      if (t->dtype() != DType::kInt32 && t->dtype() != DType::kInt64)
        return InvalidArgument("a start is %s; expected int32 or int64",
                               Name(t->dtype()));
    }
    if ((s.tensors_.empty() ? static_cast<int64_t>(s.starts_.size()) : given) !=
        static_cast<int64_t>(s.axes_.size()))
      return InvalidArgument("there are not as many starts as axes");
    return s;
  }

  // The offset of the first element.
  int64_t Offset() const {
    int64_t offset = 0;
    size_t i = 0;
    const auto add = [&](int64_t start) {
      const int64_t extent = input_[axes_[i]];
      offset += RangeOf(start, start, strides_[i], extent).start *
                tensor_strides_[axes_[i]];
      ++i;
    };
    for (const Tensor* t : tensors_)
      for (int64_t k = 0; k < t->size(); ++k)
        add(t->dtype() == DType::kInt64 ? t->data<int64_t>()[k]
                                        : t->data<int32_t>()[k]);
    if (tensors_.empty())
      for (int64_t start : starts_) add(start);
    return offset;
  }

  // Strides of Input for each of its axes, in a loop over Out.
  std::vector<int64_t> LoopStrides() const {
    std::vector<int64_t> strides = tensor_strides_;
    for (size_t i = 0; i < axes_.size(); ++i) strides[axes_[i]] *= strides_[i];
    return strides;
  }

 private:
  Shape input_;
  std::vector<size_t> axes_;
  std::vector<int64_t> starts_, strides_, tensor_strides_;
  std::vector<Tensor*> tensors_;
};

// Out's shape with the dropped axes put back as 1.
Shape FullShape(const OpDesc& op, const Shape& out, size_t rank) {
  std::vector<bool> drop(rank, false);
  for (int64_t axis : IntsAttr(op, "decrease_axis"))
    drop[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank)
                                      : axis)] = true;
  Shape full;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i)
    full.push_back(drop[i] || next >= out.size() ? 1 : out[next++]);
  return full;
}

// A loop over the part of Input (tensor `which`) and Out.
StridedLoop<2> PartLoop(const Shape& full, const Starts& starts, bool grad) {
  const auto strides = starts.LoopStrides();
  const auto out = RowMajorStrides(full);
  StridedLoop<2> loop;
  for (size_t i = 0; i < full.size(); ++i)
    grad ? loop.Add(full[i], {out[i], strides[i]})
         : loop.Add(full[i], {strides[i], out[i]});
  return loop;
}

absl::StatusOr<Step> BindSlice(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Starts starts, Starts::Of(context, in->shape()));
  const auto loop = PartLoop(FullShape(context->op(), out->shape(), in->rank()),
                             starts, false);
  return DispatchBytes(in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([in, out, starts, loop](const RunContext&) {
      if (out->size() > 0)
        CopyLoop(loop, in->data<T>() + starts.Offset(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSliceGrad(BindContext* context) {
  context->NoBuffer(context->Input("Input"));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* din = context->Output("Input@GRAD");
  PD_ASSIGN_OR_RETURN(const Starts starts, Starts::Of(context, din->shape()));
  const auto loop = PartLoop(
      FullShape(context->op(), dout->shape(), din->rank()), starts, true);
  return DispatchBytes(din->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([dout, din, starts, loop](const RunContext&) {
      std::memset(din->raw(), 0, din->bytes());
      if (dout->size() > 0)
        CopyLoop(loop, dout->data<T>(), din->data<T>() + starts.Offset());
      return absl::OkStatus();
    });
  });
}

absl::Status AddOp(OpRegistry* registry, const std::string& type) {
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
  GradSpec spec{type + "_grad",
                {"Input", "StartsTensor", "StartsTensorList", "EndsTensor",
                 "EndsTensorList"},
                {},
                {"Out"},
                {"Input"}};
  OpDef op(type);
  add_arguments(&op);
  op.Output("Out").Infer(InferSlice).Reference(BindSlice).Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  add_arguments(&grad);
  grad.Input("Out@GRAD").Output("Input@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSliceGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterSlice(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp(registry, "slice"));
  return AddOp(registry, "strided_slice");
}

}  // namespace pd
