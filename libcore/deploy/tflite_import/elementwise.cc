// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that compute element by element.
#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

using Ints = TfliteCall::Ints;
using Names = TfliteCall::Names;

void ImportUnary(TfliteCall* call) {
  LayoutTensor& x = call->In();
  call->GiveAs(call->graph().Elementwise(call->onnx_type(), &x));
}

// Operands in one form: constants of fewer axes get some of extent 1, and
// channels stay in axis 1 where all others have as many axes.
struct Operands {
  Names names;
  bool front = false;
};

Operands ReadOperands(TfliteCall* call, const std::vector<size_t>& which) {
  Operands out;
  int64_t rank = 0;
  bool front = false;
  for (const size_t i : which) {
    LayoutTensor& x = call->In(i);
    rank = std::max(rank, x.rank());
    front = front || !x.front.empty();
  }
  for (const size_t i : which)
    front = front && (call->Known(i) != nullptr || call->Rank(i) == rank);
  if (!call->ok()) return out;
  LayoutGraph& graph = call->graph();
  for (const size_t i : which) {
    LayoutTensor& x = call->In(i);
    const Array* known = call->Known(i);
    if (!front || known == nullptr || known->size() == 1) {
      out.names.push_back(front && known == nullptr ? graph.Front(&x)
                                                    : graph.Plain(&x));
      continue;
    }
    Array wide = *known;
    wide.shape.insert(wide.shape.begin(), static_cast<size_t>(rank - x.rank()),
                      1);
    Ints perm = {0, rank - 1};
    for (int64_t axis = 1; axis < rank - 1; ++axis) perm.push_back(axis);
    out.names.push_back(call->Param(i, "front", PermutedArray(wide, perm)));
  }
  out.front = front;
  return out;
}

void ImportBinary(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1});
  call->GiveActivated(call->graph().Emit(call->onnx_type(), operands.names),
                      call->Byte(0), operands.front);
}

// Without a fused activation: its first option is none.
void ImportPlainBinary(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1});
  call->Give(call->graph().Emit(call->onnx_type(), operands.names),
             operands.front);
}

void ImportNotEqual(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1});
  const std::string equal = call->graph().Emit("Equal", operands.names);
  call->Give(call->graph().Emit("Not", {equal}), operands.front);
}

void ImportAddMany(TfliteCall* call) {
  std::vector<size_t> all;
  for (size_t i = 0; i < call->inputs(); ++i) all.push_back(i);
  const Operands operands = ReadOperands(call, all);
  call->Give(call->graph().Emit("Sum", operands.names), operands.front);
}

void ImportSelect(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1, 2});
  call->Give(call->graph().Emit("Where", operands.names), operands.front);
}

// SELECT, the first version: a condition of one axis chooses rows.
void ImportOldSelect(TfliteCall* call) {
  if (call->Rank(0) != call->Rank(1) && call->Rank(0) != 0)
    call->Fail(Unimplemented("a condition of %s for %s",
                             ToString(call->In(0).shape),
                             ToString(call->In(1).shape)));
  ImportSelect(call);
}

void ImportSquare(TfliteCall* call) {
  LayoutTensor& x = call->In();
  call->GiveAs(call->graph().Broadcast("Mul", {&x, &x}));
}

void ImportSquaredDifference(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1});
  const std::string off = call->graph().Emit("Sub", operands.names);
  call->Give(call->graph().Emit("Mul", {off, off}), operands.front);
}

void ImportRsqrt(TfliteCall* call) {
  LayoutTensor root = call->graph().Elementwise("Sqrt", &call->In());
  call->GiveAs(call->graph().Elementwise("Reciprocal", &root));
}

void ImportFloorDiv(TfliteCall* call) {
  if (call->In().dtype != DType::kFloat32)
    call->Fail(Unimplemented("a quotient of integers"));
  const Operands operands = ReadOperands(call, {0, 1});
  const std::string quotient = call->graph().Emit("Div", operands.names);
  call->Give(call->graph().Emit("Floor", {quotient}), operands.front);
}

void Clip(TfliteCall* call, double least, double most) {
  LayoutGraph& graph = call->graph();
  call->GiveAs(graph.Elementwise("Clip", &call->In(),
                                 {graph.Scalar(least), graph.Scalar(most)}));
}

void ImportRelu6(TfliteCall* call) { Clip(call, 0, 6); }
void ImportReluN1(TfliteCall* call) { Clip(call, -1, 1); }
void ImportRelu01(TfliteCall* call) { Clip(call, 0, 1); }

void ImportLeaky(TfliteCall* call) {
  call->GiveAs(call->graph().Elementwise(
      "LeakyRelu", &call->In(), {}, {{"alpha", OnnxFloat(call->Float(0))}}));
}

void ImportGelu(TfliteCall* call) {
  call->GiveAs(call->graph().Elementwise(
      "Gelu", &call->In(), {},
      {{"approximate", OnnxText(call->Byte(0) != 0 ? "tanh" : "none")}}));
}

void ImportPrelu(TfliteCall* call) {
  const Operands operands = ReadOperands(call, {0, 1});
  call->Give(call->graph().Emit("PRelu", operands.names), operands.front);
}

// Along the last axis.
void Normalize(TfliteCall* call, const std::string& op_type, double beta) {
  LayoutTensor x = call->In();
  if (x.rank() < 1) call->Fail(InvalidArgument("a tensor without axes"));
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  if (beta != 1) x = graph.Elementwise("Mul", &x, {graph.Scalar(beta)});
  const bool front = !x.front.empty();
  call->Give(graph.Emit(op_type.c_str(), {graph.Any(&x)},
                        {{"axis", OnnxInt(front ? 1 : -1)}}),
             front);
}

void ImportSoftmax(TfliteCall* call) {
  Normalize(call, "Softmax", call->Float(0));
}

void ImportLogSoftmax(TfliteCall* call) { Normalize(call, "LogSoftmax", 1); }

// x over its norm along the last axis, which is not taken for less than 1e-6.
void ImportL2Norm(TfliteCall* call) {
  LayoutGraph& graph = call->graph();
  const std::string x = call->X();
  const std::string norm = graph.Emit("ReduceL2", {x, graph.ConstInts({-1})},
                                      {{"keepdims", OnnxInt(1)}});
  call->GiveActivated(
      graph.Emit("Div", {x, graph.Emit("Max", {norm, graph.Scalar(1e-6)})}),
      call->Byte(0));
}

// Constants of 16 and 8 bits are taken for float32 from the first.
void ImportDequantize(TfliteCall* call) {
  const Array* known = call->Known(0);
  if (known != nullptr) return call->GiveConstant(*known);
  LayoutTensor& x = call->In();
  if (x.dtype == DType::kFloat32) return call->GiveAs(x);
  call->GiveAs(call->graph().Elementwise("Cast", &x, {},
                                         {{"to", OnnxInt(/*float32*/ 1)}}));
}

void ImportQuantize(TfliteCall* call) {
  if (!IsQuantized(call->OutFact()))
    call->Fail(
        Unimplemented("integers of TFLite's type %d", call->OutFact().type));
  call->GiveAs(call->In());
}

void ImportCast(TfliteCall* call) {
  const auto& dtype = call->OutFact().dtype;
  if (!dtype.has_value())
    call->Fail(
        Unimplemented("a tensor of TFLite's type %d", call->OutFact().type));
  if (!call->ok()) return;
  const auto type = OnnxElementType(*dtype);
  if (!type.ok()) return call->Fail(type.status());
  call->GiveAs(call->graph().Elementwise("Cast", &call->In(), {},
                                         {{"to", OnnxInt(*type)}}));
}

void ImportZeros(TfliteCall* call) {
  LayoutTensor& x = call->In();
  LayoutGraph& graph = call->graph();
  call->GiveAs(graph.Elementwise("Mul", &x, {graph.Scalar(0, x.dtype)}));
}

}  // namespace

TfliteImportEntries TfliteElementwiseImports() {
  return {
      {0, "ADD", ImportBinary, "Add"},
      {6, "DEQUANTIZE", ImportDequantize},
      {8, "FLOOR", ImportUnary, "Floor"},
      {11, "L2_NORMALIZATION", ImportL2Norm},
      {14, "LOGISTIC", ImportUnary, "Sigmoid"},
      {18, "MUL", ImportBinary, "Mul"},
      {19, "RELU", ImportUnary, "Relu"},
      {20, "RELU_N1_TO_1", ImportReluN1},
      {21, "RELU6", ImportRelu6},
      {25, "SOFTMAX", ImportSoftmax},
      {28, "TANH", ImportUnary, "Tanh"},
      {41, "SUB", ImportBinary, "Sub"},
      {42, "DIV", ImportBinary, "Div"},
      {47, "EXP", ImportUnary, "Exp"},
      {50, "LOG_SOFTMAX", ImportLogSoftmax},
      {53, "CAST", ImportCast},
      {54, "PRELU", ImportPrelu},
      {55, "MAXIMUM", ImportPlainBinary, "Max"},
      {57, "MINIMUM", ImportPlainBinary, "Min"},
      {58, "LESS", ImportPlainBinary, "Less"},
      {59, "NEG", ImportUnary, "Neg"},
      {61, "GREATER", ImportPlainBinary, "Greater"},
      {62, "GREATER_EQUAL", ImportPlainBinary, "GreaterOrEqual"},
      {63, "LESS_EQUAL", ImportPlainBinary, "LessOrEqual"},
      {64, "SELECT", ImportOldSelect},
      {66, "SIN", ImportUnary, "Sin"},
      {71, "EQUAL", ImportPlainBinary, "Equal"},
      {72, "NOT_EQUAL", ImportNotEqual},
      {73, "LOG", ImportUnary, "Log"},
      {75, "SQRT", ImportUnary, "Sqrt"},
      {76, "RSQRT", ImportRsqrt},
      {78, "POW", ImportPlainBinary, "Pow"},
      {84, "LOGICAL_OR", ImportPlainBinary, "Or"},
      {86, "LOGICAL_AND", ImportPlainBinary, "And"},
      {87, "LOGICAL_NOT", ImportUnary, "Not"},
      {90, "FLOOR_DIV", ImportFloorDiv},
      {92, "SQUARE", ImportSquare},
      {93, "ZEROS_LIKE", ImportZeros},
      {98, "LEAKY_RELU", ImportLeaky},
      {99, "SQUARED_DIFFERENCE", ImportSquaredDifference},
      {101, "ABS", ImportUnary, "Abs"},
      {104, "CEIL", ImportUnary, "Ceil"},
      {106, "ADD_N", ImportAddMany},
      {108, "COS", ImportUnary, "Cos"},
      {111, "ELU", ImportUnary, "Elu"},
      {114, "QUANTIZE", ImportQuantize},
      {116, "ROUND", ImportUnary, "Round"},
      {117, "HARD_SWISH", ImportUnary, "HardSwish"},
      {123, "SELECT_V2", ImportSelect},
      {150, "GELU", ImportGelu},
      {152, "RELU_0_TO_1", ImportRelu01},
      {158, "SIGN", ImportUnary, "Sign"},
  };
}

}  // namespace pd
