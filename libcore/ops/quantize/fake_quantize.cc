// SPDX-License-Identifier: Apache-2.0
// Quantization simulated in floating point (quantize.h has the formula); the
// ops named ..._quantize_dequantize_... multiply back by s / n.
//   fake_(quantize|quantize_dequantize)_abs_max: s = max |X|, which is OutScale
//   fake_channel_wise_...: the same for each channel along quant_axis;
//     fake_channel_wise_quantize_abs_max reads OutScale when is_test
//   fake_quantize_range_abs_max: s = the greatest of the last window_size
//     values of max |X|, which OutScales holds; InScale when is_test
//   fake_..._moving_average_abs_max: s = OutAccum / OutState, with
//     OutState = moving_rate * InState + 1,
//     OutAccum = moving_rate * InAccum + max |X|; InScale when is_test
//   moving_average_abs_max_scale: Out = X, OutScale as before
// Gradients pass straight through: X@GRAD = Out@GRAD
// (stright_throuth_estimator_grad). Those of ops that do not come back to
// floating point do not exist in PaddlePaddle either.
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/quantize/quantize.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kFakeQuantizeGrain = 8192;
constexpr int32_t kRoundType = 1;

template <typename T>
T AbsMax(const T* x, int64_t n) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
  return most;
}

template <typename T>
void QuantizeAll(const Tensor& x, const Quantizer<T>& quantizer, Tensor* out) {
  const T* in = x.data<T>();
  T* result = out->data<T>();
  ParallelFor(x.size(), kFakeQuantizeGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[i] = quantizer(in[i]);
  });
}

bool ComesBack(const OpDesc& op) {
  return op.type.find("quantize_dequantize") != std::string::npos;
}

absl::StatusOr<Step> BindAbsMax(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* scale = context->Output("OutScale");
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  const bool back = ComesBack(context->op());
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T s = AbsMax(x->data<T>(), x->size());
      *scale->data<T>() = s;
      QuantizeAll(*x, Quantizer<T>(attrs.levels, attrs.to_even, back, s), out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindFakeQuantizeChannels(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* scale = context->Output("OutScale");
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  PD_ASSIGN_OR_RETURN(
      const ChannelView view,
      ViewChannels(x->shape(), context->Attr<int32_t>("quant_axis")));
  const bool back = ComesBack(context->op());
  const bool test = !back && context->Attr<bool>("is_test");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* scales = scale->data<T>();
      if (!test) AbsMaxOfChannels(x->data<T>(), view, scales);
      ForChannels(x->data<T>(), view, out->data<T>(), [&](int64_t c) {
        return Quantizer<T>(attrs.levels, attrs.to_even, back, scales[c]);
      });
      return absl::OkStatus();
    });
  });
}

// Out with the given scale, which OutScale gets too.
absl::StatusOr<Step> BindTest(BindContext* context, const QuantAttrs& attrs) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* in_scale = context->Input("InScale");
  Tensor* out_scale = context->Output("OutScale");
  const bool back = ComesBack(context->op());
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InScale", x->dtype(), 1));
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T s = *in_scale->data<T>();
      if (out_scale != nullptr) *out_scale->data<T>() = s;
      QuantizeAll(*x, Quantizer<T>(attrs.levels, attrs.to_even, back, s), out);
      return absl::OkStatus();
    });
  });
}

// The greatest of the window after max |X| has replaced its oldest value.
template <typename T>
T MoveWindow(T current, T last, int64_t iteration, int64_t size, T* window) {
  T& place = window[iteration % size];
  const T removed = place;
  place = current;
  if (last < current) return current;
  if (!(std::fabs(removed - last) < T(1e-6))) return last;
  return AbsMax(window, std::min(iteration, size));
}

absl::StatusOr<Step> BindRange(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  if (context->Attr<bool>("is_test")) return BindTest(context, attrs);
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* last = context->Input("InScale");
  Tensor* iter = context->Input("Iter");
  Tensor* scale = context->Output("OutScale");
  Tensor* window = context->Output("OutScales");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InScale", x->dtype(), 1));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Iter", DType::kInt64, 1));
  if (window == nullptr) return InvalidArgument("'OutScales' is missing");
  const int64_t size = context->Attr<int32_t>("window_size");
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const int64_t iteration = *iter->data<int64_t>();
      if (iteration < 0)
        return InvalidArgument("'Iter' is %d; expected 0 or more", iteration);
      const T s = MoveWindow(AbsMax(x->data<T>(), x->size()), *last->data<T>(),
                             iteration, size, window->data<T>());
      *scale->data<T>() = s;
      QuantizeAll(*x, Quantizer<T>(attrs.levels, attrs.to_even, false, s), out);
      return absl::OkStatus();
    });
  });
}

// The tensors of a moving average.
struct Average {
  Tensor *in_state, *in_accum, *out_state, *out_accum, *out_scale;
  float rate;

  template <typename T>
  T Move(const Tensor& x) const {
    const T s = MoveScale(AbsMax(x.data<T>(), x.size()), rate,
                          *in_state->data<T>(), *in_accum->data<T>(),
                          out_state->data<T>(), out_accum->data<T>());
    *out_scale->data<T>() = s;
    return s;
  }
};

absl::StatusOr<Average> ReadAverage(BindContext* context) {
  const DType dtype = context->Input("X")->dtype();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InState", dtype, 1));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InAccum", dtype, 1));
  Average a = {
      context->Input("InState"),   context->Input("InAccum"),
      context->Output("OutState"), context->Output("OutAccum"),
      context->Output("OutScale"), context->Attr<float>("moving_rate")};
  if (a.out_state == nullptr || a.out_accum == nullptr ||
      a.out_scale == nullptr)
    return InvalidArgument("'OutState', 'OutAccum' or 'OutScale' is missing");
  return a;
}

absl::StatusOr<Step> BindMovingAverage(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  if (context->Attr<bool>("is_test")) return BindTest(context, attrs);
  PD_ASSIGN_OR_RETURN(const Average average, ReadAverage(context));
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool back = ComesBack(context->op());
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T s = average.Move<T>(*x);
      QuantizeAll(*x, Quantizer<T>(attrs.levels, attrs.to_even, back, s), out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindScale(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool test = context->Attr<bool>("is_test");
  Average average = {};
  if (!test) {
    PD_ASSIGN_OR_RETURN(average, ReadAverage(context));
  }
  if (out != nullptr) context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (!test) average.Move<T>(*x);
      if (out != nullptr) CopyUnlessSame(x, out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindStraight(BindContext* context) {
  context->Alias(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  return Step();
}

absl::Status InferFake(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(InferUnary(context));
  context->SetOutput("OutScale", {1}, x.dtype);
  context->SetOutput("OutState", {1}, x.dtype);
  context->SetOutput("OutAccum", {1}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferRange(InferContext* context) {
  PD_RETURN_IF_ERROR(InferFake(context));
  const int32_t size = context->Attr<int32_t>("window_size");
  if (size < 1)
    return InvalidArgument("attr 'window_size' is %d; expected 1 or more",
                           size);
  context->SetOutput("OutScales", {size}, context->Input("X").dtype);
  return absl::OkStatus();
}

absl::Status InferChannels(InferContext* context) {
  PD_RETURN_IF_ERROR(InferUnary(context));
  const TensorMeta& x = context->Input("X");
  const int32_t axis = context->Attr<int32_t>("quant_axis");
  PD_RETURN_IF_ERROR(ViewChannels(x.shape, axis).status());
  context->SetOutput("OutScale", {x.shape[static_cast<size_t>(axis)]}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferStraight(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

// X, Out and OutScale, and whether there is a gradient.
OpDef Fake(const std::string& type, bool differentiable) {
  OpDef op(type);
  op.Input("X").Output("Out").Output("OutScale");
  op.Attr("bit_length", 8).Attr("round_type", kRoundType);
  if (differentiable)
    op.Grad(GradSpec{"stright_throuth_estimator_grad", {}, {}, {"Out"}, {"X"}});
  else
    op.NoGrad();
  return op;
}

absl::Status AddMovingAverage(const std::string& type, bool differentiable,
                              OpRegistry* registry) {
  OpDef op = Fake(type, differentiable);
  op.Input("InScale").OptionalInput("InAccum").OptionalInput("InState");
  op.OptionalOutput("OutState").OptionalOutput("OutAccum");
  op.Attr("moving_rate", 0.9f).Attr("is_test", false);
  op.Infer(InferFake).Reference(BindMovingAverage);
  return registry->Add(std::move(op));
}

absl::Status AddScale(OpRegistry* registry) {
  OpDef op("moving_average_abs_max_scale");
  op.Input("X").OptionalInput("InAccum").OptionalInput("InState");
  op.OptionalOutput("Out").OptionalOutput("OutScale");
  op.OptionalOutput("OutState").OptionalOutput("OutAccum");
  op.Attr("moving_rate", 0.9f).Attr("is_test", false);
  op.Grad(GradSpec{"stright_throuth_estimator_grad", {}, {}, {"Out"}, {"X"}});
  op.Infer(InferFake).Reference(BindScale);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterFakeQuantize(OpRegistry* registry) {
  for (const bool back : {false, true}) {
    const std::string kind = back ? "quantize_dequantize" : "quantize";
    OpDef whole = Fake("fake_" + kind + "_abs_max", back);
    whole.Infer(InferFake).Reference(BindAbsMax);
    PD_RETURN_IF_ERROR(registry->Add(std::move(whole)));

    OpDef channels = Fake("fake_channel_wise_" + kind + "_abs_max", back);
    channels.Attr("quant_axis", 0);
    if (!back) channels.Attr("is_test", false);
    channels.Infer(InferChannels).Reference(BindFakeQuantizeChannels);
    PD_RETURN_IF_ERROR(registry->Add(std::move(channels)));

    PD_RETURN_IF_ERROR(AddMovingAverage(
        "fake_" + kind + "_moving_average_abs_max", back, registry));
  }
  OpDef range = Fake("fake_quantize_range_abs_max", false);
  range.Input("InScale").OptionalInput("Iter").OptionalOutput("OutScales");
  range.Attr("window_size", 10000).Attr("is_test", false);
  range.Infer(InferRange).Reference(BindRange);
  PD_RETURN_IF_ERROR(registry->Add(std::move(range)));
  PD_RETURN_IF_ERROR(AddScale(registry));

  OpDef grad("stright_throuth_estimator_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferStraight).NoGrad().Reference(BindStraight);
  return registry->Add(std::move(grad));
}

}  // namespace pd
