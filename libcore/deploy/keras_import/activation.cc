// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor: the activations that layers name, and the layers
// that are nothing else.
#include <cmath>
#include <map>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

using Attrs = KerasCall::Attrs;
using ValueKind = KerasValue::Kind;

// Functions that are one node of ONNX's.
const std::map<std::string, const char*>& OneNode() {
  static const auto* names =
      new std::map<std::string, const char*>{{"elu", "Elu"},
                                             {"exp", "Exp"},
                                             {"exponential", "Exp"},
                                             {"gelu", "Gelu"},
                                             {"hard_silu", "HardSwish"},
                                             {"hard_swish", "HardSwish"},
                                             {"mish", "Mish"},
                                             {"relu", "Relu"},
                                             {"selu", "Selu"},
                                             {"sigmoid", "Sigmoid"},
                                             {"softplus", "Softplus"},
                                             {"softsign", "Softsign"},
                                             {"tanh", "Tanh"}};
  return *names;
}

KerasTensor Node(KerasCall* call, KerasTensor x, const char* op_type,
                 const KerasCall::Names& others = {}, Attrs attrs = {}) {
  static_cast<LayoutTensor&>(x) =
      call->graph().Elementwise(op_type, &x, others, std::move(attrs));
  return x;
}

KerasTensor Clipped(KerasCall* call, KerasTensor x, double least, double most) {
  return Node(call, x, "Clip",
              {call->graph().Scalar(least), call->graph().Scalar(most)});
}

// Along one axis of Keras' form.
KerasTensor AlongAxis(KerasCall* call, KerasTensor x, const char* op_type,
                      int64_t axis) {
  axis = call->Axis(axis, x.rank());
  const bool front = !x.front.empty();
  return Node(call, x, op_type, {},
              {{"axis", OnnxInt(front ? FrontAxis(axis, x.rank()) : axis)}});
}

KerasTensor HardSigmoid(KerasCall* call, KerasTensor x) {
  return Node(call, x, "HardSigmoid", {},
              {{"alpha", OnnxFloat(call->keras() > 2 ? 1.0 / 6 : 0.2)},
               {"beta", OnnxFloat(0.5)}});
}

KerasTensor NamedFunction(KerasCall* call, KerasTensor x,
                          const std::string& name) {
  const auto one = OneNode().find(name);
  if (one != OneNode().end()) return Node(call, x, one->second);
  if (name == "linear") return x;
  if (name == "relu6") return Clipped(call, x, 0, 6);
  if (name == "swish" || name == "silu") {
    KerasTensor gate = Node(call, x, "Sigmoid");
    static_cast<LayoutTensor&>(x) = call->graph().Broadcast("Mul", {&x, &gate});
    return x;
  }
  if (name == "hard_sigmoid") return HardSigmoid(call, x);
  if (name == "leaky_relu")
    return Node(call, x, "LeakyRelu", {}, {{"alpha", OnnxFloat(0.2)}});
  if (name == "log_sigmoid")
    return Node(call, Node(call, Node(call, x, "Neg"), "Softplus"), "Neg");
  if (name == "hard_tanh") return Clipped(call, x, -1, 1);
  if (name == "softmax" || name == "log_softmax")
    return AlongAxis(call, x, name == "softmax" ? "Softmax" : "LogSoftmax", -1);
  call->Fail(Unimplemented("activation '%s'", name));
  return x;
}

// min(x, max) where x >= threshold, else slope (x - threshold).
KerasTensor Rectified(KerasCall* call, KerasTensor x, double slope,
                      double threshold, double most) {
  LayoutGraph& graph = call->graph();
  if (threshold != 0) {
    const std::string at = graph.Scalar(threshold);
    const std::string below = graph.Emit(
        "Mul", {graph.Emit("Sub", {graph.Any(&x), at}), graph.Scalar(slope)});
    const std::string above = graph.Emit("GreaterOrEqual", {graph.Any(&x), at});
    const bool front = !x.front.empty();
    static_cast<LayoutTensor&>(x) = graph.Made(
        graph.Emit("Where", {above, graph.Any(&x), below}), x.shape, front);
  } else if (slope == 0) {
    return std::isinf(most) ? Node(call, x, "Relu") : Clipped(call, x, 0, most);
  } else {
    x = Node(call, x, "LeakyRelu", {}, {{"alpha", OnnxFloat(slope)}});
  }
  return std::isinf(most) ? x : Node(call, x, "Min", {graph.Scalar(most)});
}

double NumberIn(const KerasValue& config, const char* name, double otherwise) {
  const KerasValue& value = config[name];
  return value.kind == ValueKind::kInt || value.kind == ValueKind::kFloat
             ? value.f
             : otherwise;
}

void ImportActivation(KerasCall* call) {
  call->Give(call->Activated(call->In()));
}

void ImportRelu(KerasCall* call) {
  call->Give(Rectified(call, call->In(), call->Number("negative_slope", 0),
                       call->Number("threshold", 0),
                       call->Number("max_value", INFINITY)));
}

void ImportLeakyRelu(KerasCall* call) {
  const double slope = call->Number(
      call->Has("negative_slope") ? "negative_slope" : "alpha", 0.3);
  call->Give(
      Node(call, call->In(), "LeakyRelu", {}, {{"alpha", OnnxFloat(slope)}}));
}

void ImportElu(KerasCall* call) {
  call->Give(Node(call, call->In(), "Elu", {},
                  {{"alpha", OnnxFloat(call->Number("alpha", 1))}}));
}

// The slopes have the shape of a record, 1 along axes that share them.
void ImportPrelu(KerasCall* call) {
  KerasTensor x = call->In();
  call->WantWeights(1);
  const Array& alpha = call->Weight(0, x.rank() - 1);
  if (!call->ok()) return;
  if (x.front.empty())
    return call->Give(Node(call, x, "PRelu", {call->Param("alpha", alpha)}));
  KerasCall::Ints perm = {x.rank() - 2};
  for (int64_t i = 0; i < x.rank() - 2; ++i) perm.push_back(i);
  call->Give(Node(call, x, "PRelu",
                  {call->Param("alpha.T", PermutedArray(alpha, perm))}));
}

void ImportSoftmax(KerasCall* call) {
  const KerasCall::Ints axes = call->IntList("axis");
  if (axes.size() > 1) call->Fail(Unimplemented("a softmax over several axes"));
  call->WantUnmasked();
  call->Give(
      AlongAxis(call, call->In(), "Softmax", axes.empty() ? -1 : axes[0]));
}

void ImportNothing(KerasCall* call) { call->Give(call->In()); }

void ImportRescaling(KerasCall* call) {
  KerasTensor x = call->In();
  if (x.dtype != DType::kFloat32) {
    const bool front = !x.front.empty();
    static_cast<LayoutTensor&>(x) = call->graph().Made(
        call->graph().Cast(call->graph().Any(&x), DType::kFloat32), x.shape,
        front);
  }
  x = Node(call, x, "Mul", {call->graph().Scalar(call->Number("scale", 1))});
  const double offset = call->Number("offset", 0);
  if (offset != 0) x = Node(call, x, "Add", {call->graph().Scalar(offset)});
  call->Give(x);
}

}  // namespace

KerasTensor KerasCall::Activate(KerasTensor x, const KerasValue& function) {
  if (function.kind == ValueKind::kNone) return x;
  if (function.kind == ValueKind::kText)
    return NamedFunction(this, x, function.text);
  const std::string& type = function["class_name"].text;
  const KerasValue& config = function["config"];
  if (config.kind == ValueKind::kText)  // Keras 3's form of a function
    return NamedFunction(this, x, config.text);
  if (type == "ReLU")
    return Rectified(this, x, NumberIn(config, "negative_slope", 0),
                     NumberIn(config, "threshold", 0),
                     NumberIn(config, "max_value", INFINITY));
  if (type == "LeakyReLU")
    return Node(
        this, x, "LeakyRelu", {},
        {{"alpha", OnnxFloat(NumberIn(config, "negative_slope",
                                      NumberIn(config, "alpha", 0.3)))}});
  if (type == "ELU")
    return Node(this, x, "Elu", {},
                {{"alpha", OnnxFloat(NumberIn(config, "alpha", 1))}});
  Fail(Unimplemented("an activation of class '%s'", type));
  return x;
}

KerasImportEntries KerasActivationImports() {
  return {
      {"Activation", ImportActivation},
      {"ActivityRegularization", ImportNothing},
      {"AlphaDropout", ImportNothing},
      {"Dropout", ImportNothing},
      {"ELU", ImportElu},
      {"GaussianDropout", ImportNothing},
      {"GaussianNoise", ImportNothing},
      {"Identity", ImportNothing},
      {"LeakyReLU", ImportLeakyRelu},
      {"PReLU", ImportPrelu},
      {"ReLU", ImportRelu},
      {"Rescaling", ImportRescaling},
      {"Softmax", ImportSoftmax},
      {"SpatialDropout1D", ImportNothing},
      {"SpatialDropout2D", ImportNothing},
      {"SpatialDropout3D", ImportNothing},
  };
}

}  // namespace pd
