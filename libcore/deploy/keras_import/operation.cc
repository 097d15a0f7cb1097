// SPDX-License-Identifier: Apache-2.0
// Functions of TensorFlow that a network of Keras 2 calls between its layers:
// x + 3.0 is a TFOpLambda whose function is '__operators__.add'.
#include <map>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

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

}  // namespace

KerasImportEntries KerasOperationImports() {
  return {{"TFOpLambda", ImportOperation}};
}

}  // namespace pd
