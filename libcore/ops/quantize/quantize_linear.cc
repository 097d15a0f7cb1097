// SPDX-License-Identifier: Apache-2.0
// The quantize and dequantize ops of PaddlePaddle's ONNX-like format.
// quantize_linear: Y = quantized X (quantize.h) with Scale, of one element or
//   (quant_axis >= 0) one for each channel. Unless is_test, the scale follows
//   X: OutScale = max |X| of each channel, or the moving average with rate 0.9
//   (OutState, OutAccum) for the whole tensor.
// dequantize_linear: Y = X * Scale / (2^(bit_length-1) - 1), of Scale's dtype
// only_observer: Y = X. ZeroPoint is not read. No gradients.
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/quantize/quantize.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr float kMovingRate = 0.9f;

// One channel where the axis is negative.
absl::StatusOr<ChannelView> ReadView(BindContext* context, const Tensor& x) {
  const int32_t axis = context->Attr<int32_t>("quant_axis");
  if (axis >= 0) return ViewChannels(x.shape(), axis);
  ChannelView view;
  view.inner = x.size();
  return view;
}

struct Quantize {
  Tensor *x, *y, *scale;
  Tensor *out_scale, *in_state, *in_accum, *out_state, *out_accum;
  QuantAttrs attrs;
  ChannelView view;
  bool trains, averages, observes;

  template <typename T>
  absl::Status Run() const {
    const T* in = x->data<T>();
    const T* scales = trains ? out_scale->data<T>() : scale->data<T>();
    if (trains) AbsMaxOfChannels(in, view, out_scale->data<T>());
    if (trains && averages)
      *out_scale->data<T>() = MoveScale(
          *out_scale->data<T>(), kMovingRate, *in_state->data<T>(),
          *in_accum->data<T>(), out_state->data<T>(), out_accum->data<T>());
    if (observes) {
      CopyUnlessSame(x, y);
      return absl::OkStatus();
    }
    ForChannels(in, view, y->data<T>(), [&](int64_t c) {
      return Quantizer<T>(attrs.levels, attrs.to_even, false, scales[c]);
    });
    return absl::OkStatus();
  }
};

absl::StatusOr<Step> BindQuantizeLinear(BindContext* context) {
  Quantize q = {};
  q.x = context->Input("X");
  q.y = context->Output("Y");
  q.scale = context->Input("Scale");
  q.trains = !context->Attr<bool>("is_test");
  q.observes = context->Attr<bool>("only_observer");
  q.averages = context->Attr<int32_t>("quant_axis") < 0;
  PD_ASSIGN_OR_RETURN(q.attrs, ReadQuantAttrs(context->op()));
  PD_ASSIGN_OR_RETURN(q.view, ReadView(context, *q.x));
  const DType dtype = q.x->dtype();
  if (q.trains) {
    q.out_scale = context->Output("OutScale");
    if (q.out_scale == nullptr) return InvalidArgument("'OutScale' is missing");
  } else if (!q.observes) {
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Scale", dtype, q.view.channels));
  }
  if (q.trains && q.averages) {
    PD_RETURN_IF_ERROR(ExpectElements(*context, "InState", dtype, 1));
    PD_RETURN_IF_ERROR(ExpectElements(*context, "InAccum", dtype, 1));
    q.in_state = context->Input("InState");
    q.in_accum = context->Input("InAccum");
    q.out_state = context->Output("OutState");
    q.out_accum = context->Output("OutAccum");
    if (q.out_state == nullptr || q.out_accum == nullptr)
      return InvalidArgument("'OutState' or 'OutAccum' is missing");
  }
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([q](const RunContext&) { return q.Run<T>(); });
  });
}

absl::StatusOr<Step> BindDequantizeLinear(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Output("Y");
  Tensor* scale = context->Input("Scale");
  if (context->Attr<bool>("only_observer")) {
    if (x->dtype() != y->dtype())
      return InvalidArgument("'X' is %s; 'Scale' is %s", Name(x->dtype()),
                             Name(y->dtype()));
    context->Alias(x, y);
    return Step();
  }
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  PD_ASSIGN_OR_RETURN(const ChannelView view, ReadView(context, *x));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Scale", scale->dtype(), view.channels));
  return DispatchFloat(y->dtype(), [&](auto to) -> absl::StatusOr<Step> {
    using To = typename decltype(to)::type;
    return DispatchTypes<float, double, int8_t, int16_t, int32_t>(
        x->dtype(), [&](auto from) -> absl::StatusOr<Step> {
          using From = typename decltype(from)::type;
          return Step([=](const RunContext&) {
            const To n = static_cast<To>(attrs.levels);
            ForChannels(x->data<From>(), view, y->data<To>(), [&](int64_t c) {
              return [n, s = scale->data<To>()[c]](From v) {
                return static_cast<To>(v) * s / n;
              };
            });
            return absl::OkStatus();
          });
        });
  });
}

absl::Status InferQuantize(InferContext* context) {
  TensorMeta y = context->Input("X");
  y.value = nullptr;
  const int32_t axis = context->Attr<int32_t>("quant_axis");
  int64_t channels = 1;
  if (axis >= 0) {
    PD_RETURN_IF_ERROR(ViewChannels(y.shape, axis).status());
    channels = y.shape[static_cast<size_t>(axis)];
  }
  const bool back = context->op().type == "dequantize_linear";
  if (back) y.dtype = context->Input("Scale").dtype;
  context->SetOutput("OutScale", {channels}, y.dtype);
  context->SetOutput("OutState", {1}, y.dtype);
  context->SetOutput("OutAccum", {1}, y.dtype);
  context->SetOutput("Y", std::move(y));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterQuantizeLinear(OpRegistry* registry) {
  for (const char* type : {"quantize_linear", "dequantize_linear"}) {
    OpDef op(type);
    op.Input("X").Input("Scale").OptionalInput("ZeroPoint");
    op.OptionalInput("InAccum").OptionalInput("InState");
    op.Output("Y").OptionalOutput("OutState").OptionalOutput("OutAccum");
    op.OptionalOutput("OutScale");
    op.Attr("quant_axis", 0).Attr("bit_length", 8).Attr("round_type", 0);
    op.Attr("is_test", true).Attr("only_observer", false);
    op.Infer(InferQuantize).NoGrad();
    op.Reference(op.type() == "quantize_linear" ? BindQuantizeLinear
                                                : BindDequantizeLinear);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
