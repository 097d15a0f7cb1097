// SPDX-License-Identifier: Apache-2.0
// From quantized numbers back:
//   fake_dequantize_max_abs: Out = X * Scale / max_range
//   dequantize_abs_max: the same of int8 or int16 X, to float32
//   fake_channel_wise_dequantize_max_abs: with one tensor in Scales,
//     Out = X * Scales[0][c] / n for channel c along quant_axis; with two,
//     Out = X * Scales[0][c] * Scales[1] / (n * m) for channel c along axis
//     max(x_num_col_dims, 1). n and m are 2^(quant_bits-1) - 1.
//   dequantize_log: Out = Dict[X] for X >= 0, else -Dict[X + 128]; X is int8
// No gradients.
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/quantize/quantize.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindMaxAbs(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* scale = context->Input("Scale");
  Tensor* out = context->Output("Out");
  const float range = context->Attr<float>("max_range");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Scale", out->dtype(), 1));
  return DispatchTypes<float, double, int8_t, int16_t>(
      x->dtype(), [&](auto from) -> absl::StatusOr<Step> {
        using From = typename decltype(from)::type;
        using To =
            std::conditional_t<std::is_same_v<From, double>, double, float>;
        return Step([=, n = x->size()](const RunContext&) {
          const To s = *scale->data<To>(), r = static_cast<To>(range);
          for (int64_t i = 0; i < n; ++i)
            out->data<To>()[i] = static_cast<To>(x->data<From>()[i]) * s / r;
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindDequantizeChannels(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const size_t count = context->InputCount("Scales");
  const auto& bits = context->Attr<std::vector<int32_t>>("quant_bits");
  if ((count != 1 && count != 2) || bits.size() < count)
    return InvalidArgument(
        "'Scales' holds %d tensors and attr 'quant_bits' %d numbers; expected "
        "1 or 2 of each",
        count, bits.size());
  int64_t range = 1;
  for (size_t i = 0; i < count; ++i) {
    if (bits[i] < 2 || bits[i] > 16)
      return InvalidArgument("attr 'quant_bits' is %d; expected 2 to 16",
                             bits[i]);
    range *= QuantLevels(bits[i]);
  }
  const int32_t axis =
      count == 1 ? context->Attr<int32_t>("quant_axis")
                 : std::max(context->Attr<int32_t>("x_num_col_dims"), 1);
  PD_ASSIGN_OR_RETURN(const ChannelView view, ViewChannels(x->shape(), axis));
  Tensor* channels = context->Input("Scales", 0);
  Tensor* whole = count == 2 ? context->Input("Scales", 1) : nullptr;
  if (channels->size() != view.channels || channels->dtype() != x->dtype() ||
      (whole != nullptr && (whole->size() < 1 || whole->dtype() != x->dtype())))
    return InvalidArgument("'Scales' 0 is %s %s; 'X' is %s with %d channels",
                           Name(channels->dtype()), ToString(channels->shape()),
                           Name(x->dtype()), view.channels);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T other = whole != nullptr ? *whole->data<T>() : T(1);
      ForChannels(x->data<T>(), view, out->data<T>(), [&](int64_t c) {
        return [s = channels->data<T>()[c], other,
                r = static_cast<T>(range)](T v) { return v * s * other / r; };
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLog(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dict = context->Input("Dict");
  Tensor* out = context->Output("Out");
  if (x->dtype() != DType::kInt8)
    return InvalidArgument("'X' is %s; expected int8", Name(x->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Dict", DType::kFloat32, dict->size()));
  if (dict->size() < 128)
    return InvalidArgument("'Dict' has shape %s; expected 128 numbers",
                           ToString(dict->shape()));
  return Step([=, n = x->size()](const RunContext&) {
    const float* values = dict->data<float>();
    for (int64_t i = 0; i < n; ++i) {
      const int8_t v = x->data<int8_t>()[i];
      out->data<float>()[i] = v < 0 ? -values[v + 128] : values[v];
    }
    return absl::OkStatus();
  });
}

// Like X; float32 where X is integers.
absl::Status InferBack(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  if (!IsFloating(out.dtype)) out.dtype = DType::kFloat32;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDequantize(OpRegistry* registry) {
  for (const char* type : {"fake_dequantize_max_abs", "dequantize_abs_max"}) {
    OpDef op(type);
    op.Input("X").Input("Scale").Output("Out");
    op.RequiredAttr("max_range", AttrType::kFloat);
    op.Infer(InferBack).NoGrad().Reference(BindMaxAbs);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef channels("fake_channel_wise_dequantize_max_abs");
  channels.Input("X").Inputs("Scales").Output("Out");
  channels.Attr("quant_bits", std::vector<int32_t>{8});
  channels.Attr("quant_axis", 0).Attr("x_num_col_dims", 1);
  channels.Infer(InferBack).NoGrad().Reference(BindDequantizeChannels);
  PD_RETURN_IF_ERROR(registry->Add(std::move(channels)));

  OpDef log("dequantize_log");
  log.Input("X").Input("Dict").Output("Out");
  log.Infer(InferBack).NoGrad().Reference(BindLog);
  return registry->Add(std::move(log));
}

}  // namespace pd
