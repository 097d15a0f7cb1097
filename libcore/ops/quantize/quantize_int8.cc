// SPDX-License-Identifier: Apache-2.0
// oneDNN's int8 ops as PaddlePaddle's programs name them; numbers are rounded
// half to even and kept inside the integer type.
//   quantize:   Output = Scale * Input + Shift, as uint8 where there is a Shift
//               or not is_negative_input, else as int8; with bfloat16 as that
//   dequantize: Output = (Input - Shift) / Scale, as float32
//   requantize: Output = Input * r + z with r = Scale_out / Scale_in and
//               z = Shift_out - r * Shift_in, rounded and in [0, 255]; shifts
//               only of uint8
// No gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename T>
T Saturate(float value) {
  const float rounded = std::nearbyint(value);
  return static_cast<T>(std::clamp<float>(rounded,
                                          std::numeric_limits<T>::lowest(),
                                          std::numeric_limits<T>::max()));
}

// The step out[i] = f(in[i]).
template <typename From, typename To, typename F>
Step MapStep(Tensor* in, Tensor* out, const F& f) {
  return [in, out, f, n = in->size()](const RunContext&) {
    const From* x = in->data<From>();
    To* y = out->data<To>();
    for (int64_t i = 0; i < n; ++i) y[i] = f(static_cast<float>(x[i]));
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindQuantizeInt8(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* out = context->Output("Output");
  const float scale = context->Attr<float>("Scale");
  const float shift = std::trunc(context->Attr<float>("Shift"));
  if (scale == 0 || shift < 0 || shift > 255)
    return InvalidArgument(
        "attrs 'Scale' and 'Shift' are %g and %g; expected a scale that is not "
        "0 and a shift in [0, 255]",
        scale, shift);
  return DispatchTypes<float, BFloat16>(
      in->dtype(), [&](auto from) -> absl::StatusOr<Step> {
        using From = typename decltype(from)::type;
        const auto value = [=](float x) { return scale * x + shift; };
        if (out->dtype() == DType::kBFloat16)
          return MapStep<From, BFloat16>(
              in, out, [=](float x) { return BFloat16(value(x)); });
        if (out->dtype() == DType::kUInt8)
          return MapStep<From, uint8_t>(
              in, out, [=](float x) { return Saturate<uint8_t>(value(x)); });
        return MapStep<From, int8_t>(
            in, out, [=](float x) { return Saturate<int8_t>(value(x)); });
      });
}

absl::StatusOr<Step> BindDequantizeInt8(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* out = context->Output("Output");
  const float scale = context->Attr<float>("Scale");
  const float shift = context->Attr<float>("Shift");
  if (scale == 0) return InvalidArgument("attr 'Scale' is 0");
  return DispatchTypes<int8_t, uint8_t, BFloat16>(
      in->dtype(), [&](auto from) -> absl::StatusOr<Step> {
        using From = typename decltype(from)::type;
        return MapStep<From, float>(
            in, out, [=](float x) { return (x - shift) / scale; });
      });
}

absl::StatusOr<Step> BindRequantize(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* out = context->Output("Output");
  const float scale_in = context->Attr<float>("Scale_in");
  const float scale_out = context->Attr<float>("Scale_out");
  const float shift_in = context->Attr<float>("Shift_in");
  const float shift_out = context->Attr<float>("Shift_out");
  if (scale_in == 0 || scale_out == 0)
    return InvalidArgument("attr 'Scale_in' is %g and 'Scale_out' %g", scale_in,
                           scale_out);
  if (in->dtype() != DType::kUInt8 && (shift_in != 0 || shift_out != 0))
    return InvalidArgument(
        "attr 'Shift_in' is %g and 'Shift_out' %g; 'Input' is %s, which has "
        "none",
        shift_in, shift_out, Name(in->dtype()));
  const float ratio = scale_out / scale_in;
  const float zero =
      std::clamp(std::round(shift_out - ratio * shift_in), 0.0f, 255.0f);
  return DispatchTypes<int8_t, uint8_t>(
      in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return MapStep<T, T>(
            in, out, [=](float x) { return Saturate<T>(x * ratio + zero); });
      });
}

absl::Status InferInt8(InferContext* context) {
  TensorMeta out = context->Input("Input");
  out.value = nullptr;
  const std::string& type = context->op().type;
  if (type == "dequantize") out.dtype = DType::kFloat32;
  if (type == "quantize") {
    const bool is_signed = context->Attr<bool>("is_negative_input") &&
                           context->Attr<float>("Shift") == 0;
    out.dtype = context->Attr<bool>("bfloat16") ? DType::kBFloat16
                : is_signed                     ? DType::kInt8
                                                : DType::kUInt8;
  }
  context->SetOutput("Output", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterQuantizeInt8(OpRegistry* registry) {
  OpDef quantize("quantize");
  quantize.Input("Input").Output("Output").Attr("is_negative_input", false);
  quantize.Attr("Scale", 1.0f).Attr("Shift", 0.0f).Attr("bfloat16", false);
  quantize.Attr("output_format", std::string("NHWC"));
  quantize.Infer(InferInt8).NoGrad().Reference(BindQuantizeInt8);
  PD_RETURN_IF_ERROR(registry->Add(std::move(quantize)));

  OpDef dequantize("dequantize");
  dequantize.Input("Input").Output("Output");
  dequantize.Attr("Scale", 1.0f).Attr("Shift", 0.0f);
  dequantize.Infer(InferInt8).NoGrad().Reference(BindDequantizeInt8);
  PD_RETURN_IF_ERROR(registry->Add(std::move(dequantize)));

  OpDef requantize("requantize");
  requantize.Input("Input").Output("Output");
  requantize.Attr("Scale_in", 1.0f).Attr("Scale_out", 1.0f);
  requantize.Attr("Shift_in", 1.0f).Attr("Shift_out", 1.0f);
  requantize.Infer(InferInt8).NoGrad().Reference(BindRequantize);
  return registry->Add(std::move(requantize));
}

}  // namespace pd
