// SPDX-License-Identifier: Apache-2.0
// Channels and pixels in another order, of NCHW or NHWC images:
//   pixel_shuffle: every C * r * r channels become C, in r x r pixels
//   pixel_unshuffle: the reverse
//   channel_shuffle, shuffle_channel: `groups` groups of channels, their first
//     ones first, then their second ones, ...
// Each cuts X's axes in parts, puts the parts in another order and joins them
// again. X@GRAD: Out@GRAD put back, but see shuffle_channel_grad.
#include "libcore/ops/conv/pixel_shuffle.h"

#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/permute.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

bool StartsWith(const OpDesc& op, const char* type) {
  return op.type.rfind(type, 0) == 0;
}

// `extent` over `divisor`; -1 when it is not known, -2 when it does not divide.
int64_t Divided(int64_t extent, int64_t divisor) {
  if (extent < 0) return -1;
  return extent % divisor == 0 ? extent / divisor : -2;
}

}  // namespace

Shape Shuffle::Out() const {
  Shape out;
  size_t next = 0;
  for (size_t count : joined) {
    int64_t extent = 1;
    for (size_t i = 0; i < count; ++i) {
      const int64_t part = parts[order[next++]];
      extent = extent < 0 || part < 0 ? -1 : extent * part;
    }
    out.push_back(extent);
  }
  return out;
}

absl::StatusOr<Shuffle> ShuffleOf(const OpDesc& op, const Shape& x) {
  const bool pixels = StartsWith(op, "pixel_");
  const bool up = StartsWith(op, "pixel_shuffle");
  const char* attr = up                                  ? "upscale_factor"
                     : pixels                            ? "downscale_factor"
                     : StartsWith(op, "channel_shuffle") ? "groups"
                                                         : "group";
  const int64_t r = op.Attr<int32_t>(attr);
  // shuffle_channel knows one format.
  const bool last = op.AttrOr<std::string>("data_format", "NCHW") == "NHWC";
  if (x.size() != 4 || r < 1 || r > 32768)
    return InvalidArgument(
        "X has shape %s, attr '%s' is %d; expected rank 4 "
        "and a factor of 1 or more",
        ToString(x), attr, r);
  const int64_t n = x[0], c = x[last ? 3 : 1], h = x[last ? 1 : 2],
                w = x[last ? 2 : 3];
  Shuffle s;
  if (up && last)
    s = {{n, h, w, Divided(c, r * r), r, r}, {0, 1, 4, 2, 5, 3}, {1, 2, 2, 1}};
  else if (up)
    s = {{n, Divided(c, r * r), r, r, h, w}, {0, 1, 4, 2, 5, 3}, {1, 1, 2, 2}};
  else if (pixels && last)
    s = {{n, Divided(h, r), r, Divided(w, r), r, c},
         {0, 1, 3, 5, 2, 4},
         {1, 1, 1, 3}};
  else if (pixels)
    s = {{n, c, Divided(h, r), r, Divided(w, r), r},
         {0, 1, 3, 5, 2, 4},
         {1, 3, 1, 1}};
  else if (last)
    s = {{n, h, w, r, Divided(c, r)}, {0, 1, 2, 4, 3}, {1, 1, 1, 2}};
  else
    s = {{n, r, Divided(c, r), h, w}, {0, 2, 1, 3, 4}, {1, 2, 1, 1}};
  for (int64_t part : s.parts)
    if (part == -2)
      return InvalidArgument(
          "X has shape %s; attr '%s' is %d, which does not "
          "divide it",
          ToString(x), attr, r);
  return s;
}

namespace {

absl::Status InferShuffle(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  PD_ASSIGN_OR_RETURN(const Shuffle s, ShuffleOf(context->op(), out.shape));
  out.shape = s.Out();
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindShuffle(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Shuffle s, ShuffleOf(context->op(), x->shape()));
  return CopyStep(PermuteLoop(s.parts, s.order, false), x,
                  context->Output("Out"));
}

// X's shape, from that of Out@GRAD.
absl::StatusOr<Shape> ShapeBefore(const OpDesc& op, const Shape& dout) {
  OpDesc reverse;  // its output has the shape of this one's input
  reverse.attrs = op.attrs;
  if (StartsWith(op, "pixel_shuffle")) {
    reverse.type = "pixel_unshuffle";
    reverse.attrs["downscale_factor"] = op.Attr<int32_t>("upscale_factor");
  } else if (StartsWith(op, "pixel_unshuffle")) {
    reverse.type = "pixel_shuffle";
    reverse.attrs["upscale_factor"] = op.Attr<int32_t>("downscale_factor");
  } else {
    return dout;
  }
  PD_ASSIGN_OR_RETURN(const Shuffle s, ShuffleOf(reverse, dout));
  return s.Out();
}

absl::Status InferShuffleGrad(InferContext* context) {
  const TensorMeta& dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(Shape shape, ShapeBefore(context->op(), dout.shape));
  context->SetOutput("X@GRAD", std::move(shape), dout.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindShuffleGrad(BindContext* context) {
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Shuffle s, ShuffleOf(context->op(), dx->shape()));
  if (s.Out() != dout->shape() || dx->dtype() != dout->dtype())
    return InvalidArgument("Out@GRAD is %s %s; expected %s %s",
                           Name(dout->dtype()), ToString(dout->shape()),
                           Name(dx->dtype()), ToString(s.Out()));
  // PaddlePaddle's shuffle_channel_grad shuffles once more instead of putting
  // back, which is the same only when there are as many groups as channels in
  // each. Networks were trained with that.
  const bool back = !StartsWith(context->op(), "shuffle_channel");
  return CopyStep(PermuteLoop(s.parts, s.order, back), dout, dx);
}

absl::Status AddPixelShuffleOp(OpRegistry* registry, const std::string& type,
                               const char* factor) {
  const auto add_attrs = [&](OpDef* op) {
    op->Attr(factor, int32_t{1});
    if (type != "shuffle_channel") op->Attr("data_format", std::string("NCHW"));
  };
  OpDef op(type);
  op.Input("X").Output("Out").Infer(InferShuffle).Reference(BindShuffle);
  add_attrs(&op);
  op.Grad(GradSpec{type + "_grad", {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.OptionalInput("X").Input("Out@GRAD").Output("X@GRAD");
  add_attrs(&grad);
  grad.Infer(InferShuffleGrad).NoGrad().Reference(BindShuffleGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterPixelShuffle(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddPixelShuffleOp(registry, "pixel_shuffle", "upscale_factor"));
  PD_RETURN_IF_ERROR(
      AddPixelShuffleOp(registry, "pixel_unshuffle", "downscale_factor"));
  PD_RETURN_IF_ERROR(AddPixelShuffleOp(registry, "channel_shuffle", "groups"));
  return AddPixelShuffleOp(registry, "shuffle_channel", "group");
}

}  // namespace pd
