// SPDX-License-Identifier: Apache-2.0
// Operators on elements of one, two or many tensors with numpy's broadcasting.
#include <cmath>
#include <limits>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/deploy/onnx_import/unsigned.h"

namespace pd {
namespace {

using Names = OnnxNode::Names;

// Small integers are computed with as int32: cutting the result to their width
// gives what wrapping around in it would have given.
bool IsNarrow(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUInt8 ||
         dtype == DType::kInt16;
}

std::string Widened(OnnxNode* node, const std::string& x) {
  return IsNarrow(node->TypeOf(x)) ? node->Cast(x, DType::kInt32) : x;
}

bool IsHalf(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Before opset 7 the second tensor was laid along axes of the first.
std::string LegacyBinary(OnnxNode* node, const std::string& x,
                         const std::string& y) {
  const int64_t axis = node->Int("axis", -1);
  return node->Emit(node->op_type(), {{"X", {x}}, {"Y", {y}}},
                    {{"axis", OnnxAttrInts({axis})[0]}});
}

void ImportBinary(OnnxNode* node) {
  const std::string x = node->In(0), y = node->In(1);
  const DType dtype = node->TypeOf(x);
  const std::string a = Widened(node, x), b = Widened(node, y);
  const std::string out = node->opset() < 7 && node->HasAttr("axis")
                              ? LegacyBinary(node, a, b)
                              : node->Binary(node->op_type(), a, b);
  // Comparisons stay bool.
  node->Give(0, IsNarrow(dtype) && node->TypeOf(out) == DType::kInt32
                    ? node->Cast(out, dtype)
                    : out);
}

// The elements of a constant that has one number for each channel, axis 1 of
// an operand of this rank; nothing for another constant.
std::optional<Array> ChannelsOf(const Array* constant, size_t rank) {
  if (constant == nullptr || constant->dtype != DType::kFloat32 || rank < 3 ||
      constant->shape.size() > rank || constant->shape.size() + 1 < rank)
    return std::nullopt;
  const size_t axis = 1 - (rank - constant->shape.size());
  if (constant->shape[axis] < 2 ||
      constant->shape[axis] != NumElements(constant->shape))
    return std::nullopt;
  Array channels = *constant;
  channels.shape = {constant->shape[axis]};
  return channels;
}

// A bias by channel in the form that passes look for behind a convolution.
void ImportAdd(OnnxNode* node) {
  for (const size_t i : {1, 0}) {
    const std::string x = node->In(1 - i);
    const auto bias = ChannelsOf(node->Known(i), node->ShapeOf(x).size());
    if (node->opset() < 7 || !bias.has_value() ||
        node->ShapeOf(x)[1] != bias->shape[0])
      continue;
    return node->Give(0,
                      node->Emit("elementwise_add",
                                 {{"X", {x}}, {"Y", {node->Constant(*bias)}}},
                                 {{"axis", static_cast<int32_t>(1)}}));
  }
  ImportBinary(node);
}

void ImportUnary(OnnxNode* node) {
  node->Give(0, node->Unary(node->op_type(), node->In(0)));
}

// Of small integers too.
void ImportWideUnary(OnnxNode* node) {
  const std::string x = node->In(0);
  const std::string out = node->Unary(node->op_type(), Widened(node, x));
  node->Give(0, node->Cast(out, node->TypeOf(x)));
}

void ImportNeg(OnnxNode* node) {
  const std::string x = node->In(0);
  node->Give(
      0, node->Cast(node->Affine(Widened(node, x), -1, 0), node->TypeOf(x)));
}

// Max, Min, Sum: one op after the other.
std::string Chain(OnnxNode* node, const char* op_type) {
  std::string out;
  for (const std::string& x : node->Ins()) {
    const std::string wide = IsHalf(node->TypeOf(x))
                                 ? node->Cast(x, DType::kFloat32)
                                 : Widened(node, x);
    out = out.empty() ? wide : node->Binary(op_type, out, wide);
  }
  if (node->InputCount() == 0)
    node->Fail(InvalidArgument("it has no input; expected at least one"));
  return node->ok() ? node->Cast(out, node->TypeOf(node->In(0))) : "";
}

void ImportChain(OnnxNode* node) {
  node->Give(0, Chain(node, node->op_type()));
}

void ImportMean(OnnxNode* node) {
  const double count = static_cast<double>(node->InputCount());
  node->Give(0, node->Affine(Chain(node, "elementwise_add"), 1 / count, 0));
}

void ImportPow(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const Array* exponent = node->Known(1);
  if (node->ok() && exponent != nullptr && exponent->size() == 1 &&
      IsFloating(dtype) && exponent->shape.size() <= node->ShapeOf(x).size()) {
    const double factor = OnnxNumbers(*exponent)[0];
    node->Give(0,
               node->Unary("pow", x, {{"factor", static_cast<float>(factor)}}));
    return;
  }
  const std::string y = node->In(1);
  // An integer to the power of a fraction is computed as a fraction.
  const DType common = IsFloating(node->TypeOf(y)) && !IsFloating(dtype)
                           ? DType::kFloat64
                           : dtype;
  const std::string out = node->Binary("elementwise_pow", node->Cast(x, common),
                                       node->Cast(y, common));
  node->Give(0, node->Cast(out, dtype));
}

// Truncated towards zero.
std::string Truncated(OnnxNode* node, const std::string& x) {
  return node->Mul(node->Unary("sign", x),
                   node->Unary("floor", node->Unary("abs", x)));
}

void ImportMod(OnnxNode* node) {
  const std::string x = Widened(node, node->In(0));
  const std::string y = Widened(node, node->In(1));
  const DType dtype = node->TypeOf(node->In(0));
  std::string out;
  if (node->Int("fmod", 0) == 0) {
    out = node->Binary("elementwise_mod", x, y);
  } else if (IsFloating(dtype)) {
    // The sign of x. Exact in float64 for what float32 holds in all but
    // extreme quotients.
    const std::string a = node->Cast(x, DType::kFloat64);
    const std::string b = node->Cast(y, DType::kFloat64);
    out = node->Sub(a, node->Mul(Truncated(node, node->Div(a, b)), b));
  } else {
    out = node->Sub(x, node->Mul(node->Div(x, y), y));
  }
  node->Give(0, node->Cast(out, dtype));
}

void ImportClip(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const bool by_attr = node->opset() < 11;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float low = node->Float("min", -kInfinity);
  float high = node->Float("max", kInfinity);
  bool known = true;
  if (!by_attr) {
    for (size_t i : {1, 2}) {
      if (!node->Has(i)) continue;
      const Array* bound = node->Known(i);
      known = known && bound != nullptr && bound->size() == 1;
      if (known)
        (i == 1 ? low : high) = static_cast<float>(OnnxNumbers(*bound)[0]);
    }
  }
  // As a convolution takes them in.
  if (known && dtype == DType::kFloat32 && low == 0 &&
      (high == 6 || high == kInfinity)) {
    node->Give(0, high == 6 ? node->Unary("relu6", x, {{"threshold", 6.0f}})
                            : node->Unary("relu", x));
    return;
  }
  if (known && dtype == DType::kFloat32) {
    node->Give(0, node->Unary("clip", x, {{"min", low}, {"max", high}}));
    return;
  }
  std::string out = Widened(node, x);
  const DType wide = node->TypeOf(out);
  const auto bound = [&](size_t i, float attr) -> std::string {
    if (node->Has(i)) return Widened(node, node->In(i));
    return by_attr && std::isfinite(attr) ? node->Scalar(attr, wide) : "";
  };
  const std::string min = bound(1, low), max = bound(2, high);
  if (!min.empty()) out = node->Binary("elementwise_max", out, min);
  if (!max.empty()) out = node->Binary("elementwise_min", out, max);
  node->Give(0, node->Cast(out, dtype));
}

// Halves go to the even neighbour; PaddlePaddle's go away from zero.
void ImportRound(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const std::string low = node->Unary("floor", x);
  const std::string rest = node->Sub(x, low);
  const std::string half = node->Scalar(0.5, dtype);
  const std::string odd = node->Sub(
      low, node->Affine(node->Unary("floor", node->Affine(low, 0.5, 0)), 2, 0));
  const std::string above =
      node->Cast(node->Binary("greater_than", rest, half), dtype);
  const std::string tie = node->Cast(node->Binary("equal", rest, half), dtype);
  node->Give(0, node->Add(low, node->Add(above, node->Mul(tie, odd))));
}

// The kernels of these know no halves.
std::string NotHalf(OnnxNode* node, const std::string& x) {
  return IsHalf(node->TypeOf(x)) ? node->Cast(x, DType::kFloat32) : x;
}

void ImportIsNan(OnnxNode* node) {
  node->Give(0, node->Unary("isnan_v2", NotHalf(node, node->In(0))));
}

void ImportIsInf(OnnxNode* node) {
  const std::string x = NotHalf(node, node->In(0));
  const bool negative = node->Int("detect_negative", 1) != 0;
  const bool positive = node->Int("detect_positive", 1) != 0;
  std::string out = node->Unary("isinf_v2", x);
  const std::string zero = node->Scalar(0, node->TypeOf(x));
  if (!negative)
    out =
        node->Binary("logical_and", out, node->Binary("greater_than", x, zero));
  if (!positive)
    out = node->Binary("logical_and", out, node->Binary("less_than", x, zero));
  node->Give(0, out);
}

// x * 2^y and floor(x / 2^y), in int64; shifts by less than 0 or by as many
// bits as x has leave what the sign fills in.
void ImportBitShift(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  if (node->ok() && (IsFloating(dtype) || dtype == DType::kBool))
    node->Fail(InvalidArgument("bits of %s", Name(dtype)));
  if (!node->ok()) return;
  const std::string direction = node->Str("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node->Fail(InvalidArgument("direction '%s'", direction));
  const auto number = [&](int64_t n) {
    return node->Constant(MakeArray<int64_t>({}, {n}));
  };
  const int64_t bits = static_cast<int64_t>(SizeOf(dtype)) * 8;
  const std::string wide = node->Cast(x, DType::kInt64);
  const std::string by = node->Cast(node->In(1), DType::kInt64);
  const std::string fits =
      node->Binary("logical_and", node->Binary("greater_equal", by, number(0)),
                   node->Binary("less_than", by, number(bits)));
  // 2^63 is no int64: the last step of such a shift is one of its own.
  const std::string most = number(std::min<int64_t>(bits - 1, 62));
  const std::string near =
      node->Binary("elementwise_min", node->Where(fits, by, number(0)), most);
  const std::string power = node->Gather(node->ConstInts(PowersOfTwo()),
                                         node->Reshape(near, {-1}), 0);
  const std::string factor = node->ReshapeBy(power, node->ShapeVar(near));
  std::string out, rest;
  if (direction == "LEFT") {
    out = node->Mul(wide, factor);
    rest = number(0);
  } else {
    out = node->Binary("elementwise_floordiv", wide, factor);
    rest =
        node->Binary("elementwise_min", node->Unary("sign", wide), number(0));
  }
  if (bits == 64) {
    const std::string last = node->Binary("greater_than", by, most);
    const std::string more =
        direction == "LEFT"
            ? node->Mul(out, number(2))
            : node->Binary("elementwise_floordiv", out, number(2));
    out = node->Where(last, more, out);
  }
  node->Give(0, node->Cast(node->Where(fits, out, rest), dtype));
}

// The bits of x as another type of as many.
void ImportBitCast(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType to = node->ElementType(node->Int("to", 0));
  if (node->ok() && SizeOf(node->TypeOf(x)) != SizeOf(to))
    node->Fail(InvalidArgument("%s as %s: the widths differ",
                               Name(node->TypeOf(x)), Name(to)));
  if (node->ok() && to == DType::kBool)
    node->Fail(Unimplemented("bits of %s as bool", Name(node->TypeOf(x))));
  node->Give(0, node->Emit("view_dtype", {{"input", {x}}},
                           {{"dtype", static_cast<int32_t>(to)}}, "out"));
}

void ImportWhere(OnnxNode* node) {
  const std::string x = node->In(1), y = node->In(2);
  const DType dtype = node->TypeOf(x);
  const std::string out =
      node->Where(node->In(0), Widened(node, x), Widened(node, y));
  node->Give(0, node->Cast(out, dtype));
}

void ImportIdentity(OnnxNode* node) {
  OnnxValue* value = node->Value(0);
  if (value != nullptr) node->GiveValue(0, *value);
}

// 1 where x is above the threshold.
void ImportBinarizer(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const std::string above = node->Binary(
      "greater_than", x, node->Scalar(node->Float("threshold", 0), dtype));
  node->Give(0, node->Cast(above, dtype));
}

}  // namespace

OnnxImportEntries ElementwiseImports() {
  return {
      {"Abs", ImportWideUnary, "abs"},
      {"Acos", ImportUnary, "acos"},
      {"Acosh", ImportUnary, "acosh"},
      {"Add", ImportAdd, "elementwise_add"},
      {"And", ImportBinary, "logical_and"},
      {"Asin", ImportUnary, "asin"},
      {"Asinh", ImportUnary, "asinh"},
      {"Atan", ImportUnary, "atan"},
      {"Atanh", ImportUnary, "atanh"},
      {"BitCast", ImportBitCast},
      {"BitShift", ImportBitShift},
      {"BitwiseAnd", ImportBinary, "bitwise_and"},
      {"BitwiseNot", ImportUnary, "bitwise_not"},
      {"BitwiseOr", ImportBinary, "bitwise_or"},
      {"BitwiseXor", ImportBinary, "bitwise_xor"},
      {"Ceil", ImportUnary, "ceil"},
      {"Clip", ImportClip},
      {"Cos", ImportUnary, "cos"},
      {"Cosh", ImportUnary, "cosh"},
      {"Div", ImportBinary, "elementwise_div"},
      {"Equal", ImportBinary, "equal"},
      {"Erf", ImportUnary, "erf"},
      {"Exp", ImportUnary, "exp"},
      {"Floor", ImportUnary, "floor"},
      {"Greater", ImportBinary, "greater_than"},
      {"GreaterOrEqual", ImportBinary, "greater_equal"},
      {"Identity", ImportIdentity},
      {"IsInf", ImportIsInf},
      {"IsNaN", ImportIsNan},
      {"Less", ImportBinary, "less_than"},
      {"LessOrEqual", ImportBinary, "less_equal"},
      {"Log", ImportUnary, "log"},
      {"Max", ImportChain, "elementwise_max"},
      {"Mean", ImportMean},
      {"Min", ImportChain, "elementwise_min"},
      {"Mod", ImportMod},
      {"Mul", ImportBinary, "elementwise_mul"},
      {"Neg", ImportNeg},
      {"Not", ImportUnary, "logical_not"},
      {"Or", ImportBinary, "logical_or"},
      {"Pow", ImportPow},
      {"Reciprocal", ImportUnary, "reciprocal"},
      {"Round", ImportRound},
      {"Sign", ImportWideUnary, "sign"},
      {"Sin", ImportUnary, "sin"},
      {"Sinh", ImportUnary, "sinh"},
      {"Sqrt", ImportUnary, "sqrt"},
      {"Sub", ImportBinary, "elementwise_sub"},
      {"Sum", ImportChain, "elementwise_add"},
      {"Tan", ImportUnary, "tan"},
      {"Tanh", ImportUnary, "tanh"},
      {"Where", ImportWhere},
      {"ai.onnx.ml:Binarizer", ImportBinarizer},
      {"Xor", ImportBinary, "logical_xor"},
  };
}

}  // namespace pd
