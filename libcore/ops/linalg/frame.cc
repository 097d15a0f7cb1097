// SPDX-License-Identifier: Apache-2.0
// Overlapping frames of a signal, `hop_length` elements apart:
//   frame: with axis -1, [..., samples] to [..., frame_length, frames]; with
//     axis 0, [samples, ...] to [frames, frame_length, ...]
//   overlap_add: the way back; elements that meet are added
// Each is the gradient of the other; samples behind the last frame get 0.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The geometry of both ops.
struct Frames {
  bool last = true;  // axis -1
  int64_t hop = 1, length = 0, count = 0, samples = 0;

  // The shape of the frames for a signal of this shape.
  Shape Framed(const Shape& signal) const {
    Shape shape = signal;
    if (last) {
      shape.back() = length;
      shape.push_back(count);
    } else {
      shape[0] = length;
      shape.insert(shape.begin(), count);
    }
    return shape;
  }
  Shape Signal(const Shape& framed) const {
    Shape shape = framed;
    if (last)
      shape.pop_back();
    else
      shape.erase(shape.begin());
    (last ? shape.back() : shape.front()) = samples;
    return shape;
  }
  // A loop over the frames' elements; tensor 0 is the signal, 1 the frames.
  // `others` is the product of the other extents.
  StridedLoop<2> Loop(int64_t others) const {
    StridedLoop<2> loop;
    if (last) {
      loop.Add(others, {samples, length * count});
      loop.Add(length, {1, count});
      loop.Add(count, {hop, 1});
    } else {
      loop.Add(count, {hop * others, length * others});
      loop.Add(length, {others, others});
      loop.Add(others, {1, 1});
    }
    return loop;
  }
};

absl::StatusOr<Frames> ReadAttrs(const OpDesc& op) {
  Frames f;
  f.hop = op.Attr<int32_t>("hop_length");
  const int32_t axis = op.Attr<int32_t>("axis");
  if (f.hop < 1)
    return InvalidArgument("attr 'hop_length' is %d; expected 1 or more",
                           f.hop);
  if (axis != 0 && axis != -1)
    return InvalidArgument("attr 'axis' is %d; expected 0 or -1", axis);
  f.last = axis == -1;
  return f;
}

// Of a signal's shape.
absl::StatusOr<Frames> FramesOfSignal(const OpDesc& op, const Shape& shape) {
  PD_ASSIGN_OR_RETURN(Frames f, ReadAttrs(op));
  f.length = op.Attr<int32_t>("frame_length");
  if (shape.empty())
    return InvalidArgument("X has no axes; expected rank 1 or more");
  f.samples = f.last ? shape.back() : shape.front();
  if (f.length < 1 || (f.samples >= 0 && f.length > f.samples))
    return InvalidArgument("attr 'frame_length' is %d; X has %d samples",
                           f.length, f.samples);
  f.count = f.samples < 0 ? -1 : 1 + (f.samples - f.length) / f.hop;
  return f;
}

// Of the frames' shape.
absl::StatusOr<Frames> FramesOfFramed(const OpDesc& op, const Shape& shape) {
  PD_ASSIGN_OR_RETURN(Frames f, ReadAttrs(op));
  if (shape.size() < 2)
    return InvalidArgument("X has shape %s; expected rank 2 or more",
                           ToString(shape));
  f.length = f.last ? shape[shape.size() - 2] : shape[1];
  f.count = f.last ? shape.back() : shape[0];
  f.samples = f.length < 0 || f.count < 0
                  ? -1
                  : std::max<int64_t>(0, (f.count - 1) * f.hop + f.length);
  return f;
}

absl::Status InferFrame(InferContext* context) {
  TensorMeta out;
  out.dtype = context->Input("X").dtype;
  const Shape& shape = context->Input("X").shape;
  PD_ASSIGN_OR_RETURN(const Frames f, FramesOfSignal(context->op(), shape));
  out.shape = f.Framed(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferOverlapAdd(InferContext* context) {
  TensorMeta out;
  out.dtype = context->Input("X").dtype;
  const Shape& shape = context->Input("X").shape;
  PD_ASSIGN_OR_RETURN(const Frames f, FramesOfFramed(context->op(), shape));
  out.shape = f.Signal(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// to = from, which is a signal, in frames.
absl::StatusOr<Step> Cut(const Frames& f, Tensor* from, Tensor* to) {
  if (from->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  return CopyStep(f.Loop(from->size() / f.samples), from, to);
}

// to = the sum of the frames in `from`.
absl::StatusOr<Step> Join(const Frames& f, Tensor* from, Tensor* to) {
  return DispatchArithmetic(to->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step(
        [from, to, loop = f.Loop(f.samples == 0 ? 0 : to->size() / f.samples)](
            const RunContext&) {
          std::fill_n(to->data<T>(), to->size(), T(0));
          const auto stride = loop.row_strides();
          loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
            T* sum = to->data<T>() + at[0];
            const T* part = from->data<T>() + at[1];
            for (int64_t j = 0; j < n; ++j)
              sum[j * stride[0]] += part[j * stride[1]];
          });
          return absl::OkStatus();
        });
  });
}

absl::StatusOr<Step> BindFrame(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Frames f,
                      FramesOfSignal(context->op(), x->shape()));
  return Cut(f, x, context->Output("Out"));
}

absl::StatusOr<Step> BindFrameGrad(BindContext* context) {
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  PD_ASSIGN_OR_RETURN(const Frames f,
                      FramesOfSignal(context->op(), dx->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", dx->dtype(), f.Framed(dx->shape())));
  return Join(f, context->Input("Out@GRAD"), dx);
}

absl::StatusOr<Step> BindOverlapAdd(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Frames f,
                      FramesOfFramed(context->op(), x->shape()));
  return Join(f, x, context->Output("Out"));
}

absl::StatusOr<Step> BindOverlapAddGrad(BindContext* context) {
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  PD_ASSIGN_OR_RETURN(const Frames f,
                      FramesOfFramed(context->op(), dx->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", dx->dtype(), f.Signal(dx->shape())));
  return Cut(f, context->Input("Out@GRAD"), dx);
}

absl::Status AddFrameOp(OpRegistry* registry, const std::string& type,
                        InferFn infer, BindFn bind, BindFn bind_grad) {
  OpDef op(type), grad(type + "_grad");
  op.Input("X").Output("Out").Infer(infer).Reference(bind);
  op.Grad(GradSpec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}});
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(bind_grad);
  for (OpDef* def : {&op, &grad}) {
    if (type == "frame") def->RequiredAttr("frame_length", AttrType::kInt);
    def->RequiredAttr("hop_length", AttrType::kInt).Attr("axis", int32_t{-1});
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterFrame(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddFrameOp(registry, "frame", InferFrame, BindFrame, BindFrameGrad));
  return AddFrameOp(registry, "overlap_add", InferOverlapAdd, BindOverlapAdd,
                    BindOverlapAddGrad);
}

}  // namespace pd
