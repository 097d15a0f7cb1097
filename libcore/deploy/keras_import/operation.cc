// SPDX-License-Identifier: Apache-2.0
// Functions of TensorFlow that a network of Keras 2 calls between its layers:
// x + 3.0 is a TFOpLambda whose function is '__operators__.add'.
#include <map>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

using Ints = KerasCall::Ints;
using ValueKind = KerasValue::Kind;

// ONNX's operators, and the activations that functions are.
const std::map<std::string, const char*>& Binaries() {
  static const auto* names = new std::map<std::string, const char*>{
      {"__operators__.add", "Add"}, {"math.add", "Add"},
      {"math.divide", "Div"},       {"math.maximum", "Max"},
      {"math.minimum", "Min"},      {"math.multiply", "Mul"},
      {"math.subtract", "Sub"},     {"math.truediv", "Div"}};
  return *names;
}

const std::map<std::string, const char*>& Unaries() {
  static const auto* names =
      new std::map<std::string, const char*>{{"math.exp", "exp"},
                                             {"math.sigmoid", "sigmoid"},
                                             {"math.softplus", "softplus"},
                                             {"math.tanh", "tanh"},
                                             {"nn.elu", "elu"},
                                             {"nn.relu", "relu"},
                                             {"nn.relu6", "relu6"},
                                             {"nn.sigmoid", "sigmoid"},
                                             {"nn.silu", "silu"},
                                             {"nn.tanh", "tanh"},
                                             {"sigmoid", "sigmoid"},
                                             {"tanh", "tanh"}};
  return *names;
}

void ImportOperation(KerasCall* call) {
  const std::string function = call->Text("function", "");
  const auto binary = Binaries().find(function);
  const auto unary = Unaries().find(function);
  KerasTensor x = call->In();
  static const auto* none = new std::map<std::string, KerasValue>;
  const auto& options =
      call->arguments().options == nullptr ? *none : *call->arguments().options;
  for (const auto& [name, value] : options)
    if (name != "name" && name != "y")
      call->Fail(Unimplemented("argument '%s'", name));
  if (unary != Unaries().end() && call->inputs() == 1) {
    KerasValue activation;
    activation.kind = ValueKind::kText;
    activation.text = unary->second;
    return call->Give(call->Activate(x, activation));
  }
  if (binary == Binaries().end())
    return call->Fail(Unimplemented("function '%s'", function));
  KerasTensor* y = call->inputs() > 1 ? &call->In(1) : call->Named("y");
  KerasTensor number;
  const auto given = options.find("y");
  if (y == nullptr && given != options.end() &&
      (given->second.kind == ValueKind::kFloat ||
       given->second.kind == ValueKind::kInt)) {
    number.plain = call->graph().Scalar(given->second.f, x.dtype);
    y = &number;
  }
  if (y == nullptr || (y->rank() != x.rank() && y->rank() != 0))
    return call->Fail(Unimplemented("operands of other forms"));
  static_cast<LayoutTensor&>(x) =
      call->graph().Broadcast(binary->second, {&x, y});
  call->Give(x);
}

// Functions of Keras 3, in which masks are computed.

KerasTensor BoolOf(KerasCall* call, const std::string& x, const Shape& shape) {
  KerasTensor out;
  static_cast<LayoutTensor&>(out) =
      call->graph().Made(x, shape, false, DType::kBool);
  return out;
}

void ImportSameValue(KerasCall* call, bool equal) {
  const KerasTensor& x = call->In();
  const bool number = call->inputs() == 2 && call->Rank(1) == 0;
  if (!number) call->Fail(Unimplemented("a comparison with no number"));
  if (!call->ok()) return;
  std::string y = call->graph().Emit(
      "Equal", {call->X(), call->graph().Cast(call->X(1), x.dtype)});
  if (!equal) y = call->graph().Emit("Not", {y});
  call->Give(BoolOf(call, y, x.shape));
}

void ImportEqual(KerasCall* call) { ImportSameValue(call, true); }
void ImportNotEqual(KerasCall* call) { ImportSameValue(call, false); }

void ImportAny(KerasCall* call) {
  const Ints axes = call->IntList("axis");
  Shape shape = call->In().shape;
  if (axes.size() != 1 || call->In().dtype != DType::kBool)
    call->Fail(Unimplemented("several axes, or a tensor that is not bool"));
  if (!call->ok()) return;
  const int64_t axis = call->Axis(axes[0], call->Rank());
  const bool keep = call->Flag("keepdims", false);
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const std::string y = graph.Reduce(
      "ReduceMax", graph.Cast(call->X(), DType::kInt32), {axis}, keep);
  if (keep)
    shape[static_cast<size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  call->Give(BoolOf(call, graph.Cast(y, DType::kBool), shape));
}

void ImportExpandDims(KerasCall* call) {
  const Ints axes = call->IntList("axis");
  if (axes.size() != 1) call->Fail(Unimplemented("several axes"));
  if (!call->ok()) return;
  const int64_t axis = call->Axis(axes[0], call->Rank() + 1);
  if (!call->ok()) return;
  Shape shape = call->In().shape;
  shape.insert(shape.begin() + axis, 1);
  call->Give(call->graph().Emit("Unsqueeze",
                                {call->X(), call->graph().ConstInts({axis})}),
             shape);
}

void ImportLogical(KerasCall* call, const char* op_type) {
  if (call->inputs() != 2 || call->Rank(0) != call->Rank(1) ||
      call->In(0).dtype != DType::kBool || call->In(1).dtype != DType::kBool)
    call->Fail(Unimplemented("operands of other forms"));
  if (!call->ok()) return;
  call->Give(BoolOf(call, call->graph().Emit(op_type, {call->X(), call->X(1)}),
                    BroadcastShape(call->In(0).shape, call->In(1).shape)));
}

void ImportLogicalAnd(KerasCall* call) { ImportLogical(call, "And"); }
void ImportLogicalOr(KerasCall* call) { ImportLogical(call, "Or"); }

// Masks of bool, as for an input without one.
void ImportFilledLike(KerasCall* call, const char* op_type, double value) {
  if (call->Text("dtype", "") != "bool")
    call->Fail(Unimplemented("a tensor that is not bool"));
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  call->Give(BoolOf(call,
                    graph.Emit(op_type, {graph.Cast(call->X(), DType::kBool),
                                         graph.Scalar(value, DType::kBool)}),
                    call->In().shape));
}

void ImportZerosLike(KerasCall* call) { ImportFilledLike(call, "And", 0); }
void ImportOnesLike(KerasCall* call) { ImportFilledLike(call, "Or", 1); }

}  // namespace

KerasImportEntries KerasOperationImports() {
  return {
      {"Any", ImportAny},
      {"Equal", ImportEqual},
      {"ExpandDims", ImportExpandDims},
      {"LogicalAnd", ImportLogicalAnd},
      {"LogicalOr", ImportLogicalOr},
      {"NotEqual", ImportNotEqual},
      {"OnesLike", ImportOnesLike},
      {"TFOpLambda", ImportOperation},
      {"ZerosLike", ImportZerosLike},
  };
}

}  // namespace pd
