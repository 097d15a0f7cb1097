// SPDX-License-Identifier: Apache-2.0
// quantize_linear and dequantize_linear. PaddlePaddle's scale is the number
// that becomes 2^(bits-1) - 1, ONNX's is one step. An observer changes nothing.
// Where pd-quant has found a zero point it stands at the op, as `onnx_scale`
// and `onnx_zero_point` of unsigned integers.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/deploy/onnx/dynamic_product.h"
#include "libcore/deploy/onnx/quantized_bias.h"

namespace pd {
namespace {

// Steps of a scale: a scalar, or one for each channel.
std::vector<float> StepsOf(const Array& scale, int64_t bits) {
  const auto levels = static_cast<float>((int64_t{1} << (bits - 1)) - 1);
  std::vector<float> steps;
  for (int64_t i = 0; i < scale.size(); ++i)
    steps.push_back(scale.data<float>()[i] / levels);
  return steps;
}

void Convert(OnnxOp* op) {
  op->Ignore("ZeroPoint");
  op->Ignore("InAccum");
  op->Ignore("InState");
  if (op->Bool("only_observer")) {
    op->Ignore("Scale");
    return op->Alias("Y", op->In("X"));
  }
  op->Ignore("Scale");
  if (IsForDynamicProducts(*op)) return op->Ignore("X");
  const Array* scale = op->Param("Scale");
  const int64_t bits = op->Int("bit_length");
  if (scale == nullptr || scale->dtype != DType::kFloat32)
    return op->Fail(Unimplemented("a scale that is computed"));
  // Weights of fewer bits lie in int8 with longer steps.
  const bool weight = op->Param("X") != nullptr;
  if (bits > 8 || (bits < 8 && !weight))
    return op->Fail(Unimplemented("%d bits: ONNX has 8", bits));
  OnnxAttrs attrs;
  std::string step, zero;
  const int64_t axis = op->Int("quant_axis");
  if (op->Param("X") == nullptr && axis < 0) {
    const bool own = op->HasAttr("onnx_scale");
    step = op->Const(own ? op->Float("onnx_scale") : StepsOf(*scale, bits)[0],
                     DType::kFloat32);
    zero = op->ConstArray(MakeArray<uint8_t>(
        {}, {static_cast<uint8_t>(own ? op->Int("onnx_zero_point") : 128)}));
  } else {
    const std::vector<float> steps = StepsOf(*scale, bits);
    const Shape shape = axis < 0 ? Shape() : Shape{scale->size()};
    step = op->ConstArray(MakeArray<float>(shape, steps));
    zero = op->ConstArray(
        MakeArray<int8_t>(shape, std::vector<int8_t>(steps.size())));
    if (axis >= 0) attrs.emplace_back("axis", axis);
  }
  op->Give("Y", op->onnx_type(), {op->In("X"), step, zero}, attrs);
}

}  // namespace

std::string QuantizedBias(OnnxOp* op) {
  const Array* bias = op->Param("Bias");
  if (bias == nullptr || bias->dtype != DType::kFloat32)
    return op->OptionalIn("Bias");
  const OpDesc* const x = op->MakerOf("Input");
  const OpDesc* const w = op->MakerOf("Filter");
  for (const OpDesc* maker : {x, w})
    if (maker == nullptr || maker->type != "dequantize_linear" ||
        maker->Attr<bool>("only_observer"))
      return op->OptionalIn("Bias");
  const NamedArrays& params = op->model().params;
  const auto scale_of = [&](const OpDesc& maker) {
    return StepsOf(params.at(maker.In("Scale")), 8);
  };
  const std::vector<float> ws = scale_of(*w);
  const Attribute* own = x->FindAttr("onnx_scale");
  const float xs =
      own != nullptr ? std::get<float>(*own) : scale_of(*x).front();
  op->Ignore("Bias");
  std::vector<int32_t> values;
  std::vector<float> steps;
  for (int64_t c = 0; c < bias->size(); ++c) {
    const float step = xs * ws[ws.size() == 1 ? 0 : static_cast<size_t>(c)];
    steps.push_back(step);
    const double q =
        std::nearbyint(bias->data<float>()[c] / static_cast<double>(step));
    values.push_back(static_cast<int32_t>(
        std::max(std::min(q, 2147483647.0), -2147483648.0)));
  }
  return op->Emit("DequantizeLinear",
                  {op->ConstArray(MakeArray<int32_t>({bias->size()}, values)),
                   op->ConstArray(MakeArray<float>({bias->size()}, steps)),
                   op->ConstArray(MakeArray<int32_t>(
                       {bias->size()}, std::vector<int32_t>(values.size())))},
                  {{"axis", int64_t{0}}});
}

OnnxConverters QuantizeConverters() {
  return {
      {"dequantize_linear", Convert, "DequantizeLinear"},
      {"quantize_linear", Convert, "QuantizeLinear"},
  };
}

}  // namespace pd
