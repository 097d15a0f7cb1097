// SPDX-License-Identifier: Apache-2.0
// Out = the part of X of shape `shape` that starts at `offsets`.
//   crop: the shape may be Y's; the offsets may come from Offsets
//   crop_tensor: both may come from tensors; -1 in the shape is all that is
//     left after the offset
// X@GRAD: Out@GRAD where it came from, 0 elsewhere.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// True when a tensor in one of the slots has no value yet.
bool Unknown(const InferContext& context, const char* tensor,
             const char* list) {
  for (const char* slot : {tensor, list})
    for (size_t i = 0; i < context.InputCount(slot); ++i)
      if (context.HasInput(slot) && context.Input(slot, i).value == nullptr)
        return true;
  return false;
}

absl::Status InferCrop(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod.clear();
  out.lod_level = 0;
  const Shape x = out.shape;
  Shape shape = context->HasInput("Y")
                    ? context->Input("Y").shape
                    : RequestedInts(*context, "Shape", "ShapeTensor", "shape");
  const bool open_shape =
      !context->HasInput("Y") && Unknown(*context, "Shape", "ShapeTensor");
  if (shape.empty() && !context->HasInput("Y")) shape = x;
  std::vector<int64_t> offsets =
      RequestedInts(*context, "Offsets", "OffsetsTensor", "offsets");
  const bool open_offsets = Unknown(*context, "Offsets", "OffsetsTensor");
  if (offsets.empty()) offsets.assign(x.size(), 0);
  if (shape.size() != x.size() || offsets.size() != x.size())
    return InvalidArgument("X has shape %s; 'shape' is %s, 'offsets' is %s",
                           ToString(x), ToString(shape), ToString(offsets));
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t& extent = shape[i];
    if (extent == -1 && !open_shape)
      extent =
          x[i] < 0 || open_offsets || offsets[i] < 0 ? -1 : x[i] - offsets[i];
    if (extent < -1 || (!open_offsets && offsets[i] < 0) ||
        (!open_offsets && x[i] >= 0 && extent >= 0 &&
         (offsets[i] > x[i] || extent > x[i] - offsets[i])))
      return InvalidArgument("X has shape %s; 'shape' is %s, 'offsets' is %s",
                             ToString(x), ToString(shape), ToString(offsets));
  }
  out.shape = std::move(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Where the part starts: known, or read from tensors in every step.
class Corner {
 public:
  static absl::StatusOr<Corner> Of(BindContext* context, const Shape& full,
                                   const Shape& part) {
    Corner c;
    c.full_ = full;
    c.part_ = part;
    if (full.size() != part.size())
      return InvalidArgument("X has shape %s; the part has %s", ToString(full),
                             ToString(part));
    c.offsets_ = IntsAttr(context->op(), "offsets");
    for (const char* slot : {"Offsets", "OffsetsTensor"})
      for (size_t i = 0; i < context->InputCount(slot); ++i)
        if (Tensor* t = context->Input(slot, i)) c.tensors_.push_back(t);
    for (const char* slot : {"Y", "Shape", "ShapeTensor"})
      for (size_t i = 0; i < context->InputCount(slot); ++i)
        if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
    return c;
  }

  StridedLoop<2> Loop(bool back) const {
    const auto from = RowMajorStrides(full_);
    const auto to = RowMajorStrides(part_);
    StridedLoop<2> loop;
    for (size_t i = 0; i < part_.size(); ++i)
      back ? loop.Add(part_[i], {to[i], from[i]})
           : loop.Add(part_[i], {from[i], to[i]});
    return loop;
  }

  // The offset of the first element.
  absl::StatusOr<int64_t> Base() const {
    std::vector<int64_t> offsets = offsets_;
    if (!tensors_.empty()) offsets.clear();
    for (const Tensor* t : tensors_)
      for (int64_t v : IntsOf(*t)) offsets.push_back(v);
    if (offsets.empty()) offsets.assign(full_.size(), 0);
    const auto strides = RowMajorStrides(full_);
    int64_t base = 0;
    for (size_t i = 0; i < full_.size(); ++i) {
      if (offsets.size() != full_.size() || offsets[i] < 0 ||
          offsets[i] > full_[i] || part_[i] > full_[i] - offsets[i])
        return InvalidArgument("X has shape %s; a part of %s at %s is outside",
                               ToString(full_), ToString(part_),
                               ToString(offsets));
      base += offsets[i] * strides[i];
    }
    return base;
  }

 private:
  Shape full_, part_;
  std::vector<int64_t> offsets_;
  std::vector<Tensor*> tensors_;
};

absl::StatusOr<Step> BindCrop(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Corner corner,
                      Corner::Of(context, x->shape(), out->shape()));
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, loop = corner.Loop(false)](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const int64_t base, corner.Base());
      if (out->size() > 0) CopyLoop(loop, x->data<T>() + base, out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindCropGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Corner corner,
                      Corner::Of(context, dx->shape(), dout->shape()));
  return DispatchBytes(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, loop = corner.Loop(true)](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const int64_t base, corner.Base());
      std::memset(dx->raw(), 0, dx->bytes());
      if (dout->size() > 0)
        CopyLoop(loop, dout->data<T>(), dx->data<T>() + base);
      return absl::OkStatus();
    });
  });
}

absl::Status AddCropOp(OpRegistry* registry, const std::string& type) {
  const bool tensors = type == "crop_tensor";
  GradSpec spec{type + "_grad", {"X", "Offsets"}, {}, {"Out"}, {"X"}};
  if (tensors) spec.inputs.push_back("OffsetsTensor");
  const auto add_attrs = [](OpDef* op) {
    op->Attr("offsets", std::vector<int32_t>());
    op->Attr("shape", std::vector<int32_t>());
  };
  OpDef op(type);
  op.Input("X").OptionalInput("Offsets").Output("Out");
  if (tensors) {
    op.OptionalInput("Shape").OptionalInputs("ShapeTensor");
    op.OptionalInputs("OffsetsTensor");
  } else {
    op.OptionalInput("Y");
  }
  add_attrs(&op);
  op.Infer(InferCrop).Reference(BindCrop).Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").OptionalInput("Offsets").Input("Out@GRAD");
  grad.Output("X@GRAD");
  if (tensors)
    grad.OptionalInputs("OffsetsTensor");
  else
    grad.OptionalInput("Y");
  add_attrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCropGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterCrop(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddCropOp(registry, "crop"));
  return AddCropOp(registry, "crop_tensor");
}

}  // namespace pd
