// SPDX-License-Identifier: Apache-2.0
// ATen's operators that compute by element, with broadcasting.
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/torch_import/call.h"

namespace pd {
namespace {

// An integer becomes a number where ATen's operator gives one.
std::string Floating(TorchCall* call, const char* name) {
  const std::string x = call->Tensor(name);
  return IsFloating(call->TypeOf(name)) ? x : call->Cast(x, call->OutType());
}

void ImportUnary(TorchCall* call) {
  call->Give(call->Emit(call->onnx_type(), {Floating(call, "self")}));
}

void ImportSameType(TorchCall* call) {
  call->Give(call->Emit(call->onnx_type(), {call->Tensor("self")}));
}

// Dropout of a network that does not train, copies, views of the whole.
void ImportSame(TorchCall* call) {
  if (call->Int("train", 0) != 0)
    call->Fail(Unimplemented(
        "dropout that trains; expected a network that was exported after "
        "eval()"));
  const char* name = call->Has("input") ? "input" : "self";
  call->Give(call->Tensor(name));
}

void ImportRelu6(TorchCall* call) {
  const DType dtype = call->TypeOf("self");
  call->Give(call->Emit("Clip", {call->Tensor("self"), call->Scalar(0, dtype),
                                 call->Scalar(6, dtype)}));
}

void ImportClamp(TorchCall* call) {
  const DType dtype = call->TypeOf("self");
  const auto bound = [&](const char* name) {
    return call->Has(name) ? call->Scalar(call->Number(name, 0), dtype) : "";
  };
  const std::string low = bound("min"), high = bound("max");
  call->Give(call->Emit("Clip", {call->Tensor("self"), low, high}));
}

void ImportClampByTensors(TorchCall* call) {
  std::string x = call->Tensor("self");
  if (call->Has("min")) x = call->Emit("Max", {x, call->Tensor("min")});
  if (call->Has("max")) x = call->Emit("Min", {x, call->Tensor("max")});
  call->Give(x);
}

void ImportHardtanh(TorchCall* call) {
  const DType dtype = call->TypeOf("self");
  const double low = call->Number("min_val", -1);
  const double high = call->Number("max_val", 1);
  call->Give(call->Emit("Clip", {call->Tensor("self"), call->Scalar(low, dtype),
                                 call->Scalar(high, dtype)}));
}

void ImportSilu(TorchCall* call) {
  const std::string x = call->Tensor("self");
  call->Give(call->Emit("Mul", {x, call->Emit("Sigmoid", {x})}));
}

void ImportGelu(TorchCall* call) {
  call->Give(call->Emit(
      "Gelu", {call->Tensor("self")},
      {{"approximate", OnnxText(call->Text("approximate", "none"))}}));
}

void ImportLeakyRelu(TorchCall* call) {
  call->Give(
      call->Emit("LeakyRelu", {call->Tensor("self")},
                 {{"alpha", OnnxFloat(call->Number("negative_slope", 0.01))}}));
}

void ImportElu(TorchCall* call) {
  if (call->Number("scale", 1) != 1 || call->Number("input_scale", 1) != 1)
    call->Fail(Unimplemented("scales"));
  call->Give(call->Emit("Elu", {call->Tensor("self")},
                        {{"alpha", OnnxFloat(call->Number("alpha", 1))}}));
}

void ImportHardsigmoid(TorchCall* call) {
  call->Give(
      call->Emit("HardSigmoid", {call->Tensor("self")},
                 {{"alpha", OnnxFloat(1.0 / 6)}, {"beta", OnnxFloat(0.5)}}));
}

// log(1 + exp(beta x)) / beta; above the threshold it is x but for rounding.
void ImportSoftplus(TorchCall* call) {
  const double beta = call->Number("beta", 1);
  const std::string x = call->Tensor("self");
  const DType dtype = call->TypeOf("self");
  if (beta == 1) return call->Give(call->Emit("Softplus", {x}));
  const std::string factor = call->Scalar(beta, dtype);
  call->Give(call->Emit(
      "Div",
      {call->Emit("Softplus", {call->Emit("Mul", {x, factor})}), factor}));
}

void ImportLogSigmoid(TorchCall* call) {
  call->Give(
      call->Emit("Log", {call->Emit("Sigmoid", {call->Tensor("self")})}));
}

void ImportPrelu(TorchCall* call) {
  std::string slope = call->Tensor("weight");
  const int64_t rank = call->Rank("self");
  if (call->Extent("weight", 0) > 1 && rank > 2) {
    TorchCall::Ints shape(static_cast<size_t>(rank - 1), 1);
    shape[0] = -1;
    slope = call->Emit("Reshape", {slope, call->ConstInts(shape)});
  }
  call->Give(call->Emit("PRelu", {call->Tensor("self"), slope}));
}

void ImportRsqrt(TorchCall* call) {
  call->Give(
      call->Emit("Reciprocal", {call->Emit("Sqrt", {call->Tensor("self")})}));
}

// The operands in the dtype of the answer.
std::string OperandIn(TorchCall* call, const char* name, DType dtype) {
  if (!call->Has(name)) call->Fail(InvalidArgument("it has no '%s'", name));
  if (!call->ok()) return "";
  const std::string tensor = call->TensorIfAny(name);
  if (tensor.empty()) return call->Scalar(call->Number(name, 0), dtype);
  return call->TypeOf(name) == dtype ? tensor : call->Cast(tensor, dtype);
}

void ImportBinary(TorchCall* call) {
  const DType dtype = call->OutType();
  const std::string x = OperandIn(call, "self", dtype);
  std::string y = OperandIn(call, "other", dtype);
  const double alpha = call->Number("alpha", 1);
  if (alpha != 1) y = call->Emit("Mul", {y, call->Scalar(alpha, dtype)});
  call->Give(call->Emit(call->onnx_type(), {x, y}));
}

void ImportDiv(TorchCall* call) {
  const std::string mode = call->Text("rounding_mode", "");
  const DType dtype = call->OutType();
  std::string out = call->Emit(
      "Div", {OperandIn(call, "self", dtype), OperandIn(call, "other", dtype)});
  if (!mode.empty()) {
    if (mode != "floor" || !IsFloating(dtype))
      call->Fail(Unimplemented("rounding_mode '%s'", mode));
    out = call->Emit("Floor", {out});
  }
  call->Give(out);
}

// The remainder has the sign of what is divided.
void ImportFmod(TorchCall* call) {
  const DType dtype = call->OutType();
  call->Give(call->Emit(
      "Mod", {OperandIn(call, "self", dtype), OperandIn(call, "other", dtype)},
      {{"fmod", OnnxInt(1)}}));
}

void ImportRsub(TorchCall* call) {
  const DType dtype = call->OutType();
  std::string x = OperandIn(call, "self", dtype);
  const double alpha = call->Number("alpha", 1);
  if (alpha != 1) x = call->Emit("Mul", {x, call->Scalar(alpha, dtype)});
  call->Give(call->Emit("Sub", {OperandIn(call, "other", dtype), x}));
}

void ImportPow(TorchCall* call) {
  const DType dtype = call->OutType();
  const std::string x = OperandIn(call, "self", dtype);
  if (call->TensorIfAny("exponent").empty() && call->Number("exponent", 0) == 2)
    return call->Give(call->Emit("Mul", {x, x}));
  call->Give(call->Emit("Pow", {x, OperandIn(call, "exponent", dtype)}));
}

// In a dtype that holds both sides.
void ImportCompare(TorchCall* call) {
  DType dtype = call->TypeOf("self");
  if (!call->TensorIfAny("other").empty() && IsFloating(call->TypeOf("other")))
    dtype = call->TypeOf("other");
  else if (!IsFloating(dtype) && call->TensorIfAny("other").empty())
    dtype = call->Number("other", 0) == std::floor(call->Number("other", 0))
                ? dtype
                : DType::kFloat32;
  const std::string x = OperandIn(call, "self", dtype);
  const std::string y = OperandIn(call, "other", dtype);
  if (std::string(call->onnx_type()) == "NotEqual")
    return call->Give(call->Emit("Not", {call->Emit("Equal", {x, y})}));
  call->Give(call->Emit(call->onnx_type(), {x, y}));
}

void ImportLogical(TorchCall* call) {
  const std::string x = OperandIn(call, "self", DType::kBool);
  if (std::string(call->onnx_type()) == "Not")
    return call->Give(call->Emit("Not", {x}));
  call->Give(call->Emit(call->onnx_type(),
                        {x, OperandIn(call, "other", DType::kBool)}));
}

// Of bools, where it is the same as the logical one.
void ImportBitwise(TorchCall* call) {
  if (call->OutType() != DType::kBool)
    call->Fail(Unimplemented("bits of %s", Name(call->OutType())));
  ImportLogical(call);
}

void ImportWhere(TorchCall* call) {
  const DType dtype = call->OutType();
  const std::string condition = OperandIn(call, "condition", DType::kBool);
  call->Give(call->Emit("Where", {condition, OperandIn(call, "self", dtype),
                                  OperandIn(call, "other", dtype)}));
}

void ImportMaskedFill(TorchCall* call) {
  const DType dtype = call->OutType();
  const std::string mask = OperandIn(call, "mask", DType::kBool);
  call->Give(call->Emit(
      "Where", {mask, OperandIn(call, "value", dtype), call->Tensor("self")}));
}

void ImportTo(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const DType dtype = call->OutType();
  call->Give(call->TypeOf("self") == dtype ? x : call->Cast(x, dtype));
}

}  // namespace

// Comparisons and logic, and operators that give a tensor as it is.
TorchImportEntries TorchCompareImports() {
  return {
      {"__and__.Tensor", ImportBitwise, "And"},
      {"__or__.Tensor", ImportBitwise, "Or"},
      {"_to_copy.default", ImportTo},
      {"alias.default", ImportSame},
      {"bitwise_and.Tensor", ImportBitwise, "And"},
      {"bitwise_not.default", ImportBitwise, "Not"},
      {"bitwise_or.Tensor", ImportBitwise, "Or"},
      {"clone.default", ImportSame},
      {"contiguous.default", ImportSame},
      {"detach.default", ImportSame},
      {"detach_.default", ImportSame},
      {"dropout.default", ImportSame},
      {"eq.Scalar", ImportCompare, "Equal"},
      {"eq.Tensor", ImportCompare, "Equal"},
      {"feature_dropout.default", ImportSame},
      {"ge.Scalar", ImportCompare, "GreaterOrEqual"},
      {"ge.Tensor", ImportCompare, "GreaterOrEqual"},
      {"gt.Scalar", ImportCompare, "Greater"},
      {"gt.Tensor", ImportCompare, "Greater"},
      {"le.Scalar", ImportCompare, "LessOrEqual"},
      {"le.Tensor", ImportCompare, "LessOrEqual"},
      {"lift_fresh_copy.default", ImportSame},
      {"logical_and.default", ImportLogical, "And"},
      {"logical_not.default", ImportLogical, "Not"},
      {"logical_or.default", ImportLogical, "Or"},
      {"lt.Scalar", ImportCompare, "Less"},
      {"lt.Tensor", ImportCompare, "Less"},
      {"masked_fill.Scalar", ImportMaskedFill},
      {"masked_fill.Tensor", ImportMaskedFill},
      {"ne.Scalar", ImportCompare, "NotEqual"},
      {"ne.Tensor", ImportCompare, "NotEqual"},
      {"to.device", ImportTo},
      {"to.dtype", ImportTo},
      {"to.dtype_layout", ImportTo},
      {"to.other", ImportTo},
      {"type_as.default", ImportTo},
      {"where.self", ImportWhere},
  };
}

TorchImportEntries TorchElementwiseImports() {
  return {
      {"abs.default", ImportSameType, "Abs"},
      {"add.Scalar", ImportBinary, "Add"},
      {"add.Tensor", ImportBinary, "Add"},
      {"atan.default", ImportUnary, "Atan"},
      {"ceil.default", ImportSameType, "Ceil"},
      {"clamp.default", ImportClamp},
      {"clamp.Tensor", ImportClampByTensors},
      {"clamp_max.default", ImportClamp},
      {"clamp_min.default", ImportClamp},
      {"cos.default", ImportUnary, "Cos"},
      {"div.Scalar", ImportDiv},
      {"div.Tensor", ImportDiv},
      {"div.Tensor_mode", ImportDiv},
      {"elu.default", ImportElu},
      {"erf.default", ImportUnary, "Erf"},
      {"exp.default", ImportUnary, "Exp"},
      {"floor.default", ImportSameType, "Floor"},
      {"fmod.Scalar", ImportFmod},
      {"fmod.Tensor", ImportFmod},
      {"gelu.default", ImportGelu},
      {"hardsigmoid.default", ImportHardsigmoid},
      {"hardswish.default", ImportSameType, "HardSwish"},
      {"hardtanh.default", ImportHardtanh},
      {"leaky_relu.default", ImportLeakyRelu},
      {"log.default", ImportUnary, "Log"},
      {"log_sigmoid.default", ImportLogSigmoid},
      {"maximum.default", ImportBinary, "Max"},
      {"minimum.default", ImportBinary, "Min"},
      {"mish.default", ImportSameType, "Mish"},
      {"mul.Scalar", ImportBinary, "Mul"},
      {"mul.Tensor", ImportBinary, "Mul"},
      {"neg.default", ImportSameType, "Neg"},
      {"pow.Tensor_Scalar", ImportPow},
      {"pow.Tensor_Tensor", ImportPow},
      {"prelu.default", ImportPrelu},
      {"reciprocal.default", ImportUnary, "Reciprocal"},
      {"relu.default", ImportSameType, "Relu"},
      {"relu6.default", ImportRelu6},
      {"round.default", ImportSameType, "Round"},
      {"rsqrt.default", ImportRsqrt},
      {"rsub.Scalar", ImportRsub},
      {"rsub.Tensor", ImportRsub},
      {"selu.default", ImportSameType, "Selu"},
      {"sigmoid.default", ImportUnary, "Sigmoid"},
      {"sign.default", ImportSameType, "Sign"},
      {"silu.default", ImportSilu},
      {"sin.default", ImportUnary, "Sin"},
      {"softplus.default", ImportSoftplus},
      {"sqrt.default", ImportUnary, "Sqrt"},
      {"sub.Scalar", ImportBinary, "Sub"},
      {"sub.Tensor", ImportBinary, "Sub"},
      {"tanh.default", ImportUnary, "Tanh"},
  };
}

}  // namespace pd
