// SPDX-License-Identifier: Apache-2.0
// Part 1 of int8_chains: PaddlePaddle's quantizing ops in the terms of int8.h.
//   quantize_linear, dequantize_linear    int8_quantize, int8_dequantize
//   the same with only_observer           nothing
//   fake_quantize_(moving_average|range)  int8_quantize -> int8_dequantize with
//                                         a scale of 1: the op gives integers
//   fake_quantize_dequantize_moving_...   int8_quantize -> int8_dequantize
//   quantize, dequantize (oneDNN's)       int8_quantize, int8_dequantize
// An op stays whose scale is not known, not positive, or one for each channel;
// one that still learns its scale; one of other than 8 bits.
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "libcore/passes/int8_program.h"

namespace pd {
namespace {

constexpr float kLevels = 127;
constexpr int32_t kOffset = 128;  // of int8 kept as uint8

OpDesc Unary(const char* type, const std::string& x, const std::string& out) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.SetOutput("Out", {out});
  return op;
}

OpDesc Quantize(const std::string& x, const std::string& out, float factor,
                int32_t zero, int32_t low) {
  OpDesc op = Unary("int8_quantize", x, out);
  op.attrs["out_factor"] = factor;
  op.attrs["out_zero"] = zero;
  op.attrs["out_low"] = low;
  op.attrs["out_high"] = int32_t{255};
  return op;
}

OpDesc Dequantize(const std::string& x, const std::string& out, float scale,
                  int32_t zero) {
  OpDesc op = Unary("int8_dequantize", x, out);
  op.attrs["x_scale"] = scale;
  op.attrs["x_zero"] = zero;
  return op;
}

bool Is8Bits(const OpDesc& op) { return op.Attr<int32_t>("bit_length") == 8; }

// The least of int8: -128, or -127 where numbers are clipped to the scale.
int32_t LowOf(const OpDesc& op) {
  return op.Attr<int32_t>("round_type") == 0 ? 0 : 1;
}

bool IsFakeQuantize(const OpDesc& op) {
  return op.type == "fake_quantize_moving_average_abs_max" ||
         op.type == "fake_quantize_range_abs_max" ||
         op.type == "fake_quantize_dequantize_moving_average_abs_max";
}

bool IsLinear(const OpDesc& op) {
  return op.type == "quantize_linear" || op.type == "dequantize_linear";
}

// Whether it is a quantizer of a whole tensor with a scale that is given.
bool IsFixed(const OpDesc& op) {
  return op.Attr<bool>("is_test") && Is8Bits(op) &&
         (!IsLinear(op) || op.Attr<int32_t>("quant_axis") < 0);
}

}  // namespace

std::optional<float> Int8Program::ScaleOf(const std::string& name) const {
  // A fixed quantizer writes its scale back as it was.
  for (const size_t i : graph_->Writers(name)) {
    const OpDesc& writer = graph_->op(i);
    if (!IsFakeQuantize(writer) || !IsFixed(writer) ||
        writer.In("InScale") != name)
      return std::nullopt;
  }
  const Tensor* tensor =
      graph_->IsWanted(name) ? context_.value(name) : nullptr;
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32 ||
      tensor->size() != 1)
    return std::nullopt;
  const float scale = *tensor->data<float>();
  if (!std::isfinite(scale) || scale < 1e-30f) return std::nullopt;
  return scale;
}

bool Int8Program::IsReadByDequantizers(const std::string& name) const {
  if (graph_->IsWanted(name)) return false;
  for (const size_t i : graph_->Readers(name)) {
    const OpDesc& reader = graph_->op(i);
    const bool scales =
        reader.type == "dequantize" ||
        (reader.type == "dequantize_linear" && IsFixed(reader) &&
         !reader.Attr<bool>("only_observer") &&
         ScaleOf(reader.In("Scale")).has_value());
    if (!scales) return false;
  }
  return true;
}

bool Int8Program::LowerOp(const OpDesc& op, std::vector<OpDesc>* ops) {
  if (op.type == "quantize_linear" && IsFixed(op)) {
    const std::optional<float> scale = ScaleOf(op.In("Scale"));
    const std::string& out = op.Out("Y");
    if (!scale.has_value() || !IsReadByDequantizers(out)) return false;
    ops->push_back(Quantize(op.In("X"), out, kLevels * (1.0f / *scale), kOffset,
                            LowOf(op)));
    MakeBytes(out);
    return true;
  }
  if (op.type == "dequantize_linear" && bytes_.count(op.In("X")) > 0) {
    ops->push_back(Dequantize(op.In("X"), op.Out("Y"),
                              *ScaleOf(op.In("Scale")) / kLevels, kOffset));
    return true;
  }
  if (IsFakeQuantize(op) && IsFixed(op)) {
    const std::optional<float> scale = ScaleOf(op.In("InScale"));
    if (!scale.has_value() || ShapeOf(op.Out("Out")) == nullptr) return false;
    const bool back = absl::StrContains(op.type, "quantize_dequantize");
    const std::string bytes = NewBytes(op.Out("Out"));
    ops->push_back(Quantize(op.In("X"), bytes, kLevels * (1.0f / *scale),
                            kOffset, LowOf(op)));
    ops->push_back(Dequantize(bytes, op.Out("Out"),
                              back ? *scale / kLevels : 1.0f, kOffset));
    return true;
  }
  if (op.type != "quantize" && op.type != "dequantize") return false;
  const float scale = op.Attr<float>("Scale"), given = op.Attr<float>("Shift");
  const int32_t shift =
      given >= 0 && given <= 255 ? static_cast<int32_t>(given) : -1;
  if (op.type == "quantize" && std::isfinite(scale) && scale > 0 &&
      shift >= 0 && !op.Attr<bool>("bfloat16") &&
      IsReadByDequantizers(op.Out("Output"))) {
    const bool is_signed = op.Attr<bool>("is_negative_input") && shift == 0;
    ops->push_back(Quantize(op.In("Input"), op.Out("Output"), scale,
                            is_signed ? kOffset : shift, 0));
    MakeBytes(op.Out("Output"));
    return true;
  }
  if (op.type == "dequantize" && bytes_.count(op.In("Input")) > 0) {
    const int quantize = WriterOf(op.In("Input"), "quantize");
    const bool is_signed = quantize != kNone && shift == 0 &&
                           this->op(quantize).Attr<bool>("is_negative_input");
    ops->push_back(Dequantize(op.In("Input"), op.Out("Output"), 1.0f / scale,
                              is_signed ? kOffset : shift));
    return true;
  }
  return false;
}

bool Int8Program::Lower() {
  graph_.emplace(context_, program_);
  std::vector<OpDesc> ops;
  std::map<std::string, std::string> same;  // outputs of observers: inputs
  bool any = false;
  for (size_t i = 0; i < graph_->size(); ++i) {
    OpDesc op = graph_->op(i);
    for (auto& [slot, names] : op.inputs)
      for (std::string& name : names) {
        const auto it = same.find(name);
        if (it != same.end()) name = it->second;
      }
    if (IsLinear(op) && op.Attr<bool>("only_observer") &&
        op.Attr<bool>("is_test") && !graph_->IsWanted(op.Out("Y"))) {
      same[op.Out("Y")] = op.In("X");
      continue;
    }
    if (LowerOp(op, &ops))
      any = true;
    else
      ops.push_back(std::move(op));
  }
  if (!any) return false;
  for (OpDesc& op : ops) CompleteAttrs(context_, &op);
  program_->global().ops = std::move(ops);
  graph_.emplace(context_, program_);
  return true;
}

}  // namespace pd
