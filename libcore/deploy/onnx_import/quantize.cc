// SPDX-License-Identifier: Apache-2.0
// 8-bit operators, computed in floating point: integers of 8 bits, their
// products, and sums of those are exact in float64. Where scale and zero point
// are constant, as in quantized networks, whole tensors get PaddlePaddle's
// quantize and dequantize ops, and 8-bit weights its dequantize_linear: these
// the pass int8_chains knows.
#include <cmath>
#include <optional>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/conv.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// A scale or zero point of one axis, in a shape that broadcasts over x; or one
// of blocks along it (`block` elements each), repeated for them.
std::string Along(OnnxNode* node, const std::string& v, const std::string& x,
                  int64_t axis, int64_t block = 0) {
  const int64_t rank = node->Rank(x);
  const Shape& shape = node->ShapeOf(v);
  if (!node->ok() || shape.empty() ||
      (shape.size() == 1 && shape[0] == 1 && rank > 0))
    return v;
  if (block != 0) {
    const int64_t at = node->Axis(axis, rank);
    const int64_t extent = node->Extent(x, at);
    const bool fits =
        node->ok() && block > 0 && node->Rank(v) == rank && extent > 0 &&
        node->Extent(v, at) == (extent - 1) / block + 1 && extent < (1 << 24);
    if (!fits) {
      node->Fail(InvalidArgument("scales of shape %s for blocks of %d in %s",
                                 ToString(shape), block,
                                 ToString(node->ShapeOf(x))));
      return "";
    }
    Ints index(static_cast<size_t>(extent));
    for (size_t i = 0; i < index.size(); ++i)
      index[i] = static_cast<int64_t>(i) / block;
    return node->Gather(v, node->ConstInts(index), at);
  }
  if (shape.size() != 1) {
    node->Fail(InvalidArgument("scales of shape %s without a block_size",
                               ToString(shape)));
    return "";
  }
  Ints along(static_cast<size_t>(rank - node->Axis(axis, rank)), 1);
  if (!along.empty()) along[0] = -1;
  return node->Reshape(v, along);
}

// Halves go to the even neighbour.
std::string RoundEven(OnnxNode* node, const std::string& x) {
  const DType dtype = node->TypeOf(x);
  const std::string low = node->Unary("floor", x);
  const std::string rest = node->Sub(x, low);
  const std::string half = node->Scalar(0.5, dtype);
  const std::string odd = node->Sub(
      low, node->Affine(node->Unary("floor", node->Affine(low, 0.5, 0)), 2, 0));
  const std::string above =
      node->Cast(node->Binary("greater_than", rest, half), dtype);
  const std::string tie = node->Cast(node->Binary("equal", rest, half), dtype);
  return node->Add(low, node->Add(above, node->Mul(tie, odd)));
}

std::string Saturated(OnnxNode* node, const std::string& x, DType to) {
  double low = 0, high = 255;
  if (to == DType::kInt8) low = -128, high = 127;
  if (to == DType::kInt16) low = -32768, high = 32767;
  if (to == DType::kInt32) high = 65535;  // which hold uint16
  const DType dtype = node->TypeOf(x);
  const std::string above =
      node->Binary("elementwise_max", x, node->Scalar(low, dtype));
  const std::string inside =
      node->Binary("elementwise_min", above, node->Scalar(high, dtype));
  return node->Cast(node->Cast(inside, DType::kInt32), to);
}

// saturate(round(x / scale) + zero point).
std::string Quantized(OnnxNode* node, const std::string& x,
                      const std::string& scale, const std::string& zero,
                      DType to) {
  std::string y = RoundEven(node, node->Div(x, scale));
  if (!zero.empty()) y = node->Add(y, node->Cast(zero, node->TypeOf(y)));
  return Saturated(node, y, to);
}

// One number that is known now.
std::optional<double> KnownNumber(OnnxNode* node, size_t i) {
  const Array* array = node->Has(i) ? node->Known(i) : nullptr;
  if (array == nullptr || array->size() != 1) return std::nullopt;
  return OnnxNumbers(*array)[0];
}

// Attributes of quantize and dequantize; nothing where they cannot tell it.
std::optional<OnnxNode::Attrs> WholeTensor(OnnxNode* node, DType bytes) {
  const std::optional<double> scale = KnownNumber(node, 1);
  const std::optional<double> zero =
      node->Has(2) ? KnownNumber(node, 2) : std::optional<double>(0);
  const bool is_signed = bytes == DType::kInt8;
  if (!scale.has_value() || !zero.has_value() ||
      node->TypeOf(node->In(1)) != DType::kFloat32 ||
      (!is_signed && bytes != DType::kUInt8) || (is_signed && *zero != 0))
    return std::nullopt;
  const float factor = 1.0f / static_cast<float>(*scale);
  if (!std::isfinite(factor) || !(factor > 0)) return std::nullopt;
  OnnxNode::Attrs attrs = {{"Scale", factor},
                           {"Shift", static_cast<float>(*zero)}};
  return attrs;
}

void ImportQuantize(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Int("axis", 1);
  const int64_t block = node->Int("block_size", 0);
  const std::string zero = node->OptionalIn(2);
  DType to = zero.empty() ? DType::kUInt8 : node->TypeOf(zero);
  if (zero.empty() && node->Int("output_dtype", 0) != 0)
    to = node->ElementType(node->Int("output_dtype", 0));
  if (IsFloating(to) || SizeOf(to) > 4 ||
      (to == DType::kInt32 && node->UnsignedBits(2) != 16))
    return node->Fail(Unimplemented("quantization to %s", Name(to)));
  if (auto attrs = WholeTensor(node, to);
      attrs.has_value() && node->TypeOf(x) == DType::kFloat32) {
    (*attrs)["is_negative_input"] = to == DType::kInt8;
    return node->Give(0, node->Emit("quantize", {{"Input", {x}}},
                                    *std::move(attrs), "Output"));
  }
  const std::string wide =
      IsFloating(node->TypeOf(x)) ? x : node->Cast(x, DType::kFloat32);
  node->Give(
      0, Quantized(node, wide,
                   node->Cast(Along(node, node->In(1), x, axis, block),
                              node->TypeOf(wide)),
                   zero.empty() ? "" : Along(node, zero, x, axis, block), to));
}

// Constants: 8-bit weights less their zero points, where those are 8 bits too,
// become PaddlePaddle's; a bias of 32 bits becomes numbers. False for others.
bool DequantizeConstant(OnnxNode* node) {
  const Array *x = node->Known(0), *scale = node->Known(1);
  const Array* zero = node->Has(2) ? node->Known(2) : nullptr;
  if (x == nullptr || scale == nullptr || x->shape.empty() ||
      (node->Has(2) && zero == nullptr) || scale->dtype != DType::kFloat32 ||
      scale->shape.size() > 1 ||
      (zero != nullptr && zero->shape != scale->shape))
    return false;
  const bool whole = scale->size() == 1;
  const auto rank = static_cast<int64_t>(x->shape.size());
  int64_t axis = node->Int("axis", 1);
  if (axis < 0) axis += rank;
  if (!whole && (axis < 0 || axis >= rank ||
                 x->shape[static_cast<size_t>(axis)] != scale->size()))
    return false;
  int64_t inner = 1;
  for (int64_t i = axis + 1; i < rank; ++i)
    inner *= x->shape[static_cast<size_t>(i)];
  std::vector<double> values = OnnxNumbers(*x);
  std::vector<double> scales = OnnxNumbers(*scale);
  const std::vector<double> zeros =
      zero != nullptr ? OnnxNumbers(*zero) : std::vector<double>(scales.size());
  bool fits = x->dtype == DType::kInt8 || x->dtype == DType::kUInt8;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = whole ? 0 : i / static_cast<size_t>(inner) % scales.size();
    values[i] -= zeros[c];
    fits = fits && values[i] >= -128 && values[i] <= 127;
  }
  if (x->dtype == DType::kInt32) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>(values[i]) *
          static_cast<float>(
              scales[whole ? 0
                           : i / static_cast<size_t>(inner) % scales.size()]);
    node->GiveConstant(0, OnnxArray(DType::kFloat32, x->shape, values));
    return true;
  }
  if (!fits) return false;
  constexpr double kLevels = 127;
  for (double& s : scales) s *= kLevels;
  const Shape channels = {static_cast<int64_t>(scales.size())};
  node->importer().set_folding(
      false);  // until the node's end: they stay 8 bits
  node->Give(
      0,
      node->Emit(
          "dequantize_linear",
          {{"X", {node->Constant(OnnxArray(DType::kInt8, x->shape, values))}},
           {"Scale",
            {node->Constant(OnnxArray(DType::kFloat32, channels, scales))}},
           {"ZeroPoint",
            {node->Constant(OnnxArray(DType::kInt32, channels,
                                      std::vector<double>(scales.size())))}}},
          {{"quant_axis", static_cast<int32_t>(whole ? -1 : axis)},
           {"bit_length", int32_t{8}}},
          "Y"));
  return true;
}

void ImportDequantize(OnnxNode* node) {
  if (DequantizeConstant(node)) return;
  const std::string x = node->In(0), scale = node->In(1);
  if (auto attrs = WholeTensor(node, node->TypeOf(x)); attrs.has_value())
    return node->Give(0, node->Emit("dequantize", {{"Input", {x}}},
                                    *std::move(attrs), "Output"));
  const int64_t axis = node->Int("axis", 1);
  const int64_t block = node->Int("block_size", 0);
  const DType dtype = node->TypeOf(scale);
  std::string y = node->Cast(x, dtype);
  if (node->Has(2))
    y = node->Sub(y,
                  node->Cast(Along(node, node->In(2), x, axis, block), dtype));
  y = node->Mul(y, Along(node, scale, x, axis, block));
  const int64_t to = node->Int("output_dtype", 0);
  node->Give(0, to == 0 ? y : node->Cast(y, node->ElementType(to)));
}

// A scale and zero point for [min, max] of x with 0 in it.
void ImportDynamicQuantize(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const std::string none = node->Scalar(0, dtype);
  const std::string low = node->Binary(
      "elementwise_min", node->Reduce("reduce_min", x, {}, false), none);
  const std::string high = node->Binary(
      "elementwise_max", node->Reduce("reduce_max", x, {}, false), none);
  const std::string scale =
      node->Div(node->Sub(high, low), node->Scalar(255, dtype));
  const std::string zero = Saturated(
      node, RoundEven(node, node->Affine(node->Div(low, scale), -1, 0)),
      DType::kUInt8);
  node->Give(0, Quantized(node, x, scale, zero, DType::kUInt8));
  node->Give(1, scale);
  node->Give(2, zero);
}

// An 8-bit tensor minus its zero point; `axis` is that of one for each row or
// column of a matrix.
std::string Centered(OnnxNode* node, size_t x, size_t zero, int64_t axis) {
  const std::string wide = node->Cast(node->In(x), DType::kFloat64);
  if (!node->Has(zero)) return wide;
  const std::string z = node->Cast(node->In(zero), DType::kFloat64);
  return node->Sub(wide, Along(node, z, wide, axis));
}

void ImportMatMulInteger(OnnxNode* node) {
  const std::string a = Centered(node, 0, 2, -2);
  const std::string b = Centered(node, 1, 3, -1);
  node->Give(0, node->Cast(node->MatMul(a, b), DType::kInt32));
}

void ImportConvInteger(OnnxNode* node) {
  const std::string x = Centered(node, 0, 2, 1);
  const std::string w = Centered(node, 1, 3, 0);
  node->Give(0, node->Cast(OnnxConvolve(node, x, w), DType::kInt32));
}

// Inputs: a, its scale and zero point, b, its own, the result's.
void ImportQLinearMatMul(OnnxNode* node) {
  const std::string a = Centered(node, 0, 2, -2);
  const std::string b = Centered(node, 3, 5, -1);
  const auto scale = [&](size_t i, int64_t axis) {
    return node->Cast(Along(node, node->In(i), a, axis), DType::kFloat64);
  };
  const std::string product = node->MatMul(a, b);
  const std::string real =
      node->Mul(node->Mul(product, scale(1, -2)), scale(4, -1));
  node->Give(0, Quantized(node, real, node->Cast(node->In(6), DType::kFloat64),
                          node->In(7), node->TypeOf(node->In(7))));
}

// Inputs: x, its scale and zero point, w, its own, the result's, a bias.
void ImportQLinearConv(OnnxNode* node) {
  const std::string x = Centered(node, 0, 2, 1);
  const std::string w = Centered(node, 3, 5, 0);
  std::string sum = OnnxConvolve(node, x, w);
  if (node->Has(8))
    sum = node->Add(
        sum, Along(node, node->Cast(node->In(8), DType::kFloat64), sum, 1));
  const std::string scale =
      node->Mul(node->Cast(node->In(1), DType::kFloat64),
                node->Cast(Along(node, node->In(4), sum, 1), DType::kFloat64));
  node->Give(0, Quantized(node, node->Mul(sum, scale),
                          node->Cast(node->In(6), DType::kFloat64), node->In(7),
                          node->TypeOf(node->In(7))));
}

}  // namespace

OnnxImportEntries QuantizeImports() {
  return {
      {"ConvInteger", ImportConvInteger},
      {"DequantizeLinear", ImportDequantize},
      {"DynamicQuantizeLinear", ImportDynamicQuantize},
      {"MatMulInteger", ImportMatMulInteger},
      {"QLinearConv", ImportQLinearConv},
      {"QLinearMatMul", ImportQLinearMatMul},
      {"QuantizeLinear", ImportQuantize},
  };
}

}  // namespace pd
