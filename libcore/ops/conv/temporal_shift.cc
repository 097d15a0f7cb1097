// SPDX-License-Identifier: Apache-2.0
// Frames in segments of seg_num. With c1 = channels * shift_ratio and c2 twice
// that, Out's channels below c1 are those of the frame before, channels in
// [c1, c2) those of the frame after, the rest stays; beyond a segment's ends
// are zeros. X@GRAD shifts the other way.
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Frames {
  int64_t frames, segment, channels, positions, before, after;
  bool channels_last;
};

absl::StatusOr<Frames> ReadFrames(const OpDesc& op, const Shape& x) {
  Frames f;
  f.segment = op.Attr<int32_t>("seg_num");
  const float ratio = op.Attr<float>("shift_ratio");
  if (x.size() != 4 || f.segment < 1 || (x[0] >= 0 && x[0] % f.segment != 0))
    return InvalidArgument(
        "'X' has shape %s and attr 'seg_num' is %d; expected rank 4 and a "
        "divisor of the frames",
        ToString(x), f.segment);
  if (!(ratio > 0 && ratio < 0.5f))
    return InvalidArgument(
        "attr 'shift_ratio' is %g; expected more than 0 and less than 0.5",
        ratio);
  f.channels_last = op.Attr<std::string>("data_format") == "NHWC";
  f.frames = x[0];
  f.channels = f.channels_last ? x[3] : x[1];
  f.positions = f.channels_last ? x[1] * x[2] : x[2] * x[3];
  f.before = static_cast<int64_t>(static_cast<float>(f.channels) * ratio);
  f.after = static_cast<int64_t>(static_cast<float>(f.channels) * 2 * ratio);
  return f;
}

// out = in shifted; `sign` 1 forwards, -1 back.
template <typename T>
void Shift(const Frames& f, int64_t sign, const T* in, T* out) {
  const int64_t channel = f.channels_last ? 1 : f.positions;
  const int64_t position = f.channels_last ? f.channels : 1;
  const int64_t frame = f.channels * f.positions;
  ParallelFor(f.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (int64_t c = 0; c < f.channels; ++c) {
        const int64_t by = c < f.before ? -sign : (c < f.after ? sign : 0);
        const int64_t t = n % f.segment + by;
        const bool inside = t >= 0 && t < f.segment;
        const int64_t at = n * frame + c * channel;
        for (int64_t p = 0; p < f.positions; ++p)
          out[at + p * position] =
              inside ? in[at + by * frame + p * position] : T(0);
      }
  });
}

absl::StatusOr<Step> BindTemporalShift(BindContext* context, Tensor* from,
                                       Tensor* to, int64_t sign) {
  PD_ASSIGN_OR_RETURN(const Frames f, ReadFrames(context->op(), from->shape()));
  return DispatchFloat(from->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Shift<T>(f, sign, from->data<T>(), to->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindTemporalShiftForward(BindContext* context) {
  return BindTemporalShift(context, context->Input("X"), context->Output("Out"),
                           1);
}

absl::StatusOr<Step> BindBackward(BindContext* context) {
  return BindTemporalShift(context, context->Input("Out@GRAD"),
                           context->Output("X@GRAD"), -1);
}

absl::Status InferTemporalShift(InferContext* context) {
  PD_RETURN_IF_ERROR(
      ReadFrames(context->op(), context->Input("X").shape).status());
  return InferUnary(context);
}

absl::Status InferGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

void AddTemporalShiftAttrs(OpDef* def) {
  def->RequiredAttr("seg_num", AttrType::kInt).Attr("shift_ratio", 0.25f);
  def->Attr("data_format", std::string("NCHW"));
}

}  // namespace

absl::Status RegisterTemporalShift(OpRegistry* registry) {
  OpDef op("temporal_shift");
  op.Input("X").Output("Out");
  AddTemporalShiftAttrs(&op);
  op.Infer(InferTemporalShift).Reference(BindTemporalShiftForward);
  op.Grad(GradSpec{"temporal_shift_grad", {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("temporal_shift_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  AddTemporalShiftAttrs(&grad);
  grad.Infer(InferGrad).NoGrad().Reference(BindBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
