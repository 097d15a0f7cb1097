// SPDX-License-Identifier: Apache-2.0
// Element by element: arithmetic with PaddlePaddle's broadcast axis, scale,
// functions of one argument, comparisons, logic.
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

// Y's dimensions stand at X's from `axis` on; ONNX aligns at the end. Where
// they would stick out, they are 1.
std::string Aligned(OnnxOp* op, const char* slot, int64_t rank, int64_t other,
                    int64_t axis) {
  const int64_t trailing = other - axis - rank;
  std::vector<int64_t> axes;
  if (trailing > 0) {
    for (int64_t i = 0; i < trailing; ++i) axes.push_back(rank + i);
    const Array* param = op->Param(slot);
    if (param == nullptr) return op->Unsqueeze(op->In(slot), axes);
    op->Ignore(slot);
    Array reshaped = *param;  // shares the bytes
    reshaped.shape.resize(static_cast<size_t>(rank + trailing), 1);
    return op->ConstArray(reshaped);
  }
  for (int64_t i = trailing; i < 0; ++i) axes.push_back(rank + i);
  return op->Squeeze(op->In(slot), axes);
}

std::pair<std::string, std::string> Operands(OnnxOp* op) {
  const int64_t x = op->Rank("X"), y = op->Rank("Y");
  const int64_t axis = op->HasAttr("axis") ? op->Int("axis") : -1;
  if (axis == -1 || x == y) return {op->In("X"), op->In("Y")};
  if (x > y) return {op->In("X"), Aligned(op, "Y", y, x, axis)};
  return {Aligned(op, "X", x, y, axis), op->In("Y")};
}

void ConvertBinary(OnnxOp* op) {
  const auto [x, y] = Operands(op);
  op->Give("Out", op->onnx_type(), {x, y});
}

// Numbers are true unless they are 0.
std::string Truth(OnnxOp* op, const char* slot, const std::string& x) {
  return op->TypeOf(slot) == DType::kBool ? x : op->Cast(x, DType::kBool);
}

void ConvertLogical(OnnxOp* op) {
  const auto [x, y] = Operands(op);
  op->Give("Out", op->onnx_type(), {Truth(op, "X", x), Truth(op, "Y", y)});
}

void ConvertLogicalNot(OnnxOp* op) {
  op->Give("Out", "Not", {Truth(op, "X", op->In("X"))});
}

void ConvertNotEqual(OnnxOp* op) {
  const auto [x, y] = Operands(op);
  op->Give("Out", "Not", {op->Emit("Equal", {x, y})});
}

// Floors towards minus infinity.
std::string FloorDivision(OnnxOp* op, const std::string& x,
                          const std::string& y) {
  if (IsFloating(op->TypeOf("X")))
    return op->Emit("Floor", {op->Emit("Div", {x, y})});
  // ONNX's integer division truncates; without its remainder it is exact.
  return op->Emit("Div", {op->Emit("Sub", {x, op->Emit("Mod", {x, y})}), y});
}

void ConvertFloorDiv(OnnxOp* op) {
  const auto [x, y] = Operands(op);
  op->Alias("Out", FloorDivision(op, x, y));
}

// The remainder has the sign of the divisor.
void ConvertMod(OnnxOp* op) {
  const auto [x, y] = Operands(op);
  if (IsFloating(op->TypeOf("X")))
    op->Give("Out", "Sub", {x, op->Emit("Mul", {FloorDivision(op, x, y), y})});
  else
    op->Give("Out", "Mod", {x, y});
}

void ConvertScale(OnnxOp* op) {
  const DType dtype = op->TypeOf("X");
  const double scale = op->Float("scale"), bias = op->Float("bias");
  const bool bias_last = op->Bool("bias_after_scale");
  std::string y = op->In("X");
  const auto add_bias = [&] {
    if (bias != 0) y = op->Emit("Add", {y, op->Const(bias, dtype)});
  };
  if (!bias_last) add_bias();
  if (op->Has("ScaleTensor"))
    y = op->Emit("Mul", {y, op->In("ScaleTensor")});
  else if (scale != 1)
    y = op->Emit("Mul", {y, op->Const(scale, dtype)});
  if (bias_last) add_bias();
  op->Alias("Out", y);
}

void ConvertSum(OnnxOp* op) {
  const OnnxValues values = op->Ins("X");
  if (IsFloating(op->TypeOf("X")) && values.size() > 1) {
    op->Give("Out", "Sum", values);
    return;
  }
  std::string sum = values.empty() ? "" : values[0];  // ONNX sums only floats
  for (size_t i = 1; i < values.size(); ++i)
    sum = op->Emit("Add", {sum, values[i]});
  op->Alias("Out", sum);
}

void ConvertPow(OnnxOp* op) {
  const std::string factor =
      op->Has("FactorTensor") ? op->In("FactorTensor")
                              : op->Const(op->Float("factor"), op->TypeOf("X"));
  op->Give("Out", "Pow", {op->In("X"), factor});
}

void ConvertClip(OnnxOp* op) {
  const DType dtype = op->TypeOf("X");
  if (!op->Has("Min") && !op->Has("Max")) {
    op->Alias("Out",
              op->Clip(op->In("X"), op->Float("min"), op->Float("max"), dtype));
    return;
  }
  if (op->opset() < 11) {
    op->Fail(Unimplemented("bounds that are tensors"));
    return;
  }
  const auto bound = [&](const char* slot, const char* attr) {
    return op->Has(slot) ? op->Reshape(op->In(slot), {})
                         : op->Const(op->Float(attr), dtype);
  };
  op->Give("Out", "Clip",
           {op->In("X"), bound("Min", "min"), bound("Max", "max")});
}

void ConvertUnary(OnnxOp* op) {
  op->Give("Out", op->onnx_type(), {op->In("X")});
}

void ConvertSquare(OnnxOp* op) {
  const std::string x = op->In("X");
  op->Give("Out", "Mul", {x, x});
}

void ConvertRsqrt(OnnxOp* op) {
  op->Give("Out", "Reciprocal", {op->Emit("Sqrt", {op->In("X")})});
}

// Halves go away from zero; ONNX's Round takes them to the even neighbour.
void ConvertRound(OnnxOp* op) {
  const DType dtype = op->TypeOf("X");
  const std::string x = op->In("X");
  const std::string size = op->Emit("Abs", {x});
  const std::string down = op->Emit("Floor", {size});
  const std::string up = op->Emit("Add", {down, op->Const(1, dtype)});
  const std::string below =
      op->Emit("Less", {op->Emit("Sub", {size, down}), op->Const(0.5, dtype)});
  op->Give("Out", "Mul",
           {op->Emit("Sign", {x}), op->Emit("Where", {below, down, up})});
}

// log(x) to another base.
void ConvertLogBase(OnnxOp* op) {
  const double log_of_base =
      op->type() == "log2" ? 0.6931471805599453 : 2.302585092994046;
  op->Give("Out", "Div",
           {op->Emit("Log", {op->In("X")}),
            op->Const(log_of_base, op->TypeOf("X"))});
}

}  // namespace

OnnxConverters ElementwiseConverters() {
  return {
      {"abs", ConvertUnary, "Abs"},
      {"acos", ConvertUnary, "Acos"},
      {"acosh", ConvertUnary, "Acosh"},
      {"asin", ConvertUnary, "Asin"},
      {"asinh", ConvertUnary, "Asinh"},
      {"atan", ConvertUnary, "Atan"},
      {"atanh", ConvertUnary, "Atanh"},
      {"ceil", ConvertUnary, "Ceil"},
      {"clip", ConvertClip},
      {"cos", ConvertUnary, "Cos"},
      {"cosh", ConvertUnary, "Cosh"},
      {"elementwise_add", ConvertBinary, "Add"},
      {"elementwise_div", ConvertBinary, "Div"},
      {"elementwise_floordiv", ConvertFloorDiv},
      {"elementwise_max", ConvertBinary, "Max"},
      {"elementwise_min", ConvertBinary, "Min"},
      {"elementwise_mod", ConvertMod},
      {"elementwise_mul", ConvertBinary, "Mul"},
      {"elementwise_pow", ConvertBinary, "Pow"},
      {"elementwise_sub", ConvertBinary, "Sub"},
      {"equal", ConvertBinary, "Equal"},
      {"erf", ConvertUnary, "Erf"},
      {"exp", ConvertUnary, "Exp"},
      {"floor", ConvertUnary, "Floor"},
      {"greater_equal", ConvertBinary, "GreaterOrEqual"},
      {"greater_than", ConvertBinary, "Greater"},
      {"isnan_v2", ConvertUnary, "IsNaN"},
      {"less_equal", ConvertBinary, "LessOrEqual"},
      {"less_than", ConvertBinary, "Less"},
      {"log", ConvertUnary, "Log"},
      {"log10", ConvertLogBase},
      {"log2", ConvertLogBase},
      {"logical_and", ConvertLogical, "And"},
      {"logical_not", ConvertLogicalNot},
      {"logical_or", ConvertLogical, "Or"},
      {"logical_xor", ConvertLogical, "Xor"},
      {"not_equal", ConvertNotEqual},
      {"pow", ConvertPow},
      {"reciprocal", ConvertUnary, "Reciprocal"},
      {"relu", ConvertUnary, "Relu"},
      {"round", ConvertRound},
      {"rsqrt", ConvertRsqrt},
      {"scale", ConvertScale},
      {"sigmoid", ConvertUnary, "Sigmoid"},
      {"sign", ConvertUnary, "Sign"},
      {"sin", ConvertUnary, "Sin"},
      {"sinh", ConvertUnary, "Sinh"},
      {"softsign", ConvertUnary, "Softsign"},
      {"sqrt", ConvertUnary, "Sqrt"},
      {"square", ConvertSquare},
      {"sum", ConvertSum},
      {"tan", ConvertUnary, "Tan"},
      {"tanh", ConvertUnary, "Tanh"},
  };
}

}  // namespace pd
