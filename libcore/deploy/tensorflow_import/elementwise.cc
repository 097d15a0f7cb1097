// SPDX-License-Identifier: Apache-2.0
// Operators on elements of one, two or many tensors: they take pictures with
// the channels in either place.
#include <algorithm>
#include <cmath>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {
namespace {

using Names = TfCall::Names;

// Gives f(input 0), in the form that the input has.
template <typename Function>
void ApplyToEach(TfCall* call, Function f) {
  const int64_t rank = call->Rank(0);
  if (call->IsFirst(0))
    call->GiveFirst(f(call->InFirst(0)), rank);
  else
    call->Give(f(call->In(0)), rank);
}

void ImportOne(TfCall* call) {
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit(call->onnx_type(), {x});
  });
}

void ImportRsqrt(TfCall* call) {
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit("Reciprocal", {call->Emit("Sqrt", {x})});
  });
}

void ImportSquare(TfCall* call) {
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit("Mul", {x, x});
  });
}

void ImportErfc(TfCall* call) {
  const DType dtype = call->Type("T");
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit("Sub", {call->Scalar(1, dtype), call->Emit("Erf", {x})});
  });
}

void ImportRelu6(TfCall* call) {
  const DType dtype = call->Type("T");
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit("Clip",
                      {x, call->Scalar(0, dtype), call->Scalar(6, dtype)});
  });
}

void ImportLeaky(TfCall* call) {
  const double alpha = call->Float("alpha", 0.2);
  ApplyToEach(call, [&](const std::string& x) {
    return call->Emit("LeakyRelu", {x}, {{"alpha", OnnxFloat(alpha)}});
  });
}

void ImportCastTo(TfCall* call) {
  const DType dtype = call->Type("DstT");
  ApplyToEach(call, [&](const std::string& x) { return call->Cast(x, dtype); });
}

// Operands of one form. The channels are first where one of them has them so
// and the others have as many axes, one axis, which is that of the channels,
// or none.
struct TfOperands {
  Names names;
  bool first = false;
  int64_t rank = -1;
};

TfOperands OperandsOf(TfCall* call, size_t begin, size_t end) {
  TfOperands o;
  bool fits = true, known = true;
  for (size_t i = begin; i < end; ++i) {
    o.first = o.first || call->IsFirst(i);
    known = known && call->Rank(i) >= 0;
    o.rank = std::max(o.rank, call->Rank(i));
  }
  if (!known) o.rank = -1;
  for (size_t i = begin; i < end; ++i) {
    const int64_t rank = call->Rank(i);
    fits = fits && (rank == o.rank || rank == 1 || rank == 0);
  }
  o.first = o.first && fits && known && call->ok();
  for (size_t i = begin; i < end; ++i) {
    if (!o.first) {
      o.names.push_back(call->In(i));
    } else if (call->Rank(i) == o.rank) {
      o.names.push_back(call->InFirst(i));
    } else if (call->Rank(i) == 1) {
      TfCall::Ints shape(static_cast<size_t>(o.rank - 1), 1);
      shape[0] = -1;
      o.names.push_back(
          call->Emit("Reshape", {call->In(i), call->ConstInts(shape)}));
    } else {
      o.names.push_back(call->In(i));
    }
  }
  return o;
}

void GiveAs(TfCall* call, const TfOperands& o, const std::string& value) {
  if (o.first)
    call->GiveFirst(value, o.rank);
  else
    call->Give(value, o.rank);
}

void ImportTwo(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  GiveAs(call, o, call->Emit(call->onnx_type(), o.names));
}

// The picture and the vector that a product has; nothing for another one.
std::optional<Names> ProductByChannel(TfCall* call, const TfNode& product) {
  for (const size_t i : {0, 1}) {
    if (product.inputs.size() != 2) break;
    const auto picture = call->build().values.find(product.inputs[i]);
    const auto vector = call->build().values.find(product.inputs[1 - i]);
    if (picture != call->build().values.end() &&
        vector != call->build().values.end() &&
        !picture->second->first.empty() && vector->second->rank == 1)
      return Names{picture->second->first, vector->second->plain};
  }
  return std::nullopt;
}

// A batch norm as Keras writes it is a product and a sum by channel.
void ImportSum(TfCall* call) {
  for (const size_t i : {0, 1}) {
    if (!call->IsFirst(i) || call->Rank(1 - i) != 1) continue;
    const TfNode* product = call->Maker(call->node(), i, "Mul");
    if (product == nullptr) continue;
    auto names = ProductByChannel(call, *product);
    if (!names.has_value()) continue;
    names->push_back(call->In(1 - i));
    return call->GiveFirst(call->Emit("tensorflow:ScaledByChannel", *names),
                           call->Rank(i));
  }
  ImportTwo(call);
}

void ImportNotEqual(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  GiveAs(call, o, call->Emit("Not", {call->Emit("Equal", o.names)}));
}

void ImportMany(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, call->InputCount());
  GiveAs(call, o, call->Emit("Sum", o.names));
}

void ImportSquaredDifference(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  const std::string off = call->Emit("Sub", o.names);
  GiveAs(call, o, call->Emit("Mul", {off, off}));
}

// The quotient rounded down; of integers x less the rest divides exactly.
void ImportFloorDiv(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  if (IsFloating(call->Type("T")))
    return GiveAs(call, o, call->Emit("Floor", {call->Emit("Div", o.names)}));
  const std::string rest = call->Emit("Mod", o.names);
  GiveAs(
      call, o,
      call->Emit("Div", {call->Emit("Sub", {o.names[0], rest}), o.names[1]}));
}

// The rest has the sign of x.
void ImportTruncatedMod(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  GiveAs(call, o, call->Emit("Mod", o.names, {{"fmod", OnnxInt(1)}}));
}

// 0 where `zero` is 0.
std::string UnlessZero(TfCall* call, const std::string& zero,
                       const std::string& value) {
  const std::string none = call->Scalar(0, call->Type("T"));
  return call->Emit("Where", {call->Emit("Equal", {zero, none}), none, value});
}

void ImportDivNoNan(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  if (call->ok())
    GiveAs(call, o, UnlessZero(call, o.names[1], call->Emit("Div", o.names)));
}

// x f(y), and 0 where x is.
void ImportTimesFunction(TfCall* call) {
  const TfOperands o = OperandsOf(call, 0, 2);
  const std::string y = call->Emit(call->onnx_type(), {o.names[1]});
  if (call->ok())
    GiveAs(call, o,
           UnlessZero(call, o.names[0], call->Emit("Mul", {o.names[0], y})));
}

// A condition of one axis chooses rows in the operator's first version.
void ImportSelect(TfCall* call) {
  std::string condition = call->In(0);
  const std::string x = call->In(1), y = call->In(2);
  const int64_t rows = call->Rank(0);
  int64_t rank = call->Rank(1);
  if (call->node().op == "Select" && rows != 0) {
    // Both have one shape there.
    if (rank < 0) rank = call->Rank(2);
    if (rows < 0 || rank < 0)
      call->Fail(Unimplemented("a condition whose shape is not known"));
    TfCall::Ints axes;
    for (int64_t i = rows; i < rank; ++i) axes.push_back(i);
    if (!axes.empty())
      condition = call->Emit("Unsqueeze", {condition, call->ConstInts(axes)});
  }
  const bool known = rows >= 0 && rank >= 0 && call->Rank(2) >= 0;
  call->Give(call->Emit("Where", {condition, x, y}),
             known ? std::max({rows, rank, call->Rank(2)}) : -1);
}

void ImportClipByValue(TfCall* call) {
  const std::string low = call->Emit("Max", {call->In(0), call->In(1)});
  call->Give(call->Emit("Min", {low, call->In(2)}), call->Rank(0));
}

}  // namespace

TfImportEntries TfElementwiseImports() {
  return {
      {"Abs", ImportOne, "Abs"},
      {"Acos", ImportOne, "Acos"},
      {"Acosh", ImportOne, "Acosh"},
      {"Add", ImportSum, "Add"},
      {"AddN", ImportMany},
      {"AddV2", ImportSum, "Add"},
      {"Asin", ImportOne, "Asin"},
      {"Asinh", ImportOne, "Asinh"},
      {"Atan", ImportOne, "Atan"},
      {"Atanh", ImportOne, "Atanh"},
      {"Cast", ImportCastTo},
      {"Ceil", ImportOne, "Ceil"},
      {"ClipByValue", ImportClipByValue},
      {"Cos", ImportOne, "Cos"},
      {"Cosh", ImportOne, "Cosh"},
      {"Div", ImportTwo, "Div"},
      {"DivNoNan", ImportDivNoNan},
      {"Elu", ImportOne, "Elu"},
      {"Equal", ImportTwo, "Equal"},
      {"Erf", ImportOne, "Erf"},
      {"Erfc", ImportErfc},
      {"Exp", ImportOne, "Exp"},
      {"Expm1", ImportOne, "tensorflow:Expm1"},
      {"Floor", ImportOne, "Floor"},
      {"FloorDiv", ImportFloorDiv},
      {"FloorMod", ImportTwo, "Mod"},
      {"Greater", ImportTwo, "Greater"},
      {"GreaterEqual", ImportTwo, "GreaterOrEqual"},
      {"Inv", ImportOne, "Reciprocal"},
      {"IsFinite", ImportOne, "tensorflow:IsFinite"},
      {"IsInf", ImportOne, "IsInf"},
      {"IsNan", ImportOne, "IsNaN"},
      {"LeakyRelu", ImportLeaky},
      {"Less", ImportTwo, "Less"},
      {"LessEqual", ImportTwo, "LessOrEqual"},
      {"Log", ImportOne, "Log"},
      {"Log1p", ImportOne, "tensorflow:Log1p"},
      {"LogicalAnd", ImportTwo, "And"},
      {"LogicalNot", ImportOne, "Not"},
      {"LogicalOr", ImportTwo, "Or"},
      {"Maximum", ImportTwo, "Max"},
      {"Minimum", ImportTwo, "Min"},
      {"Mod", ImportTruncatedMod},
      {"Mul", ImportTwo, "Mul"},
      {"Neg", ImportOne, "Neg"},
      {"NotEqual", ImportNotEqual},
      {"Pow", ImportTwo, "Pow"},
      {"RealDiv", ImportTwo, "Div"},
      {"Reciprocal", ImportOne, "Reciprocal"},
      {"Relu", ImportOne, "Relu"},
      {"Relu6", ImportRelu6},
      {"Rint", ImportOne, "Round"},
      {"Round", ImportOne, "Round"},
      {"Rsqrt", ImportRsqrt},
      {"Select", ImportSelect},
      {"SelectV2", ImportSelect},
      {"Selu", ImportOne, "Selu"},
      {"Sigmoid", ImportOne, "Sigmoid"},
      {"Sign", ImportOne, "Sign"},
      {"Sin", ImportOne, "Sin"},
      {"Sinh", ImportOne, "Sinh"},
      {"Softplus", ImportOne, "Softplus"},
      {"Softsign", ImportOne, "Softsign"},
      {"Sqrt", ImportOne, "Sqrt"},
      {"Square", ImportSquare},
      {"SquaredDifference", ImportSquaredDifference},
      {"Sub", ImportTwo, "Sub"},
      {"Tan", ImportOne, "Tan"},
      {"Tanh", ImportOne, "Tanh"},
      {"TruncateDiv", ImportTwo, "Div"},
      {"TruncateMod", ImportTruncatedMod},
      {"Xdivy", ImportTimesFunction, "Reciprocal"},
      {"Xlogy", ImportTimesFunction, "Log"},
  };
}

}  // namespace pd
