// SPDX-License-Identifier: Apache-2.0
// Shapes and dtypes of ATen's operators that compute by element.
#include <tuple>

#include "libcore/deploy/torch_script/call.h"

namespace pd {
namespace {

void SameAsSelf(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor(call->Has("self") ? "self" : "input");
  call->Give(self.dtype, self.dims);
}

// An integer becomes a number.
void FloatOfSelf(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(IsFloating(self.dtype) ? self.dtype : DType::kFloat32, self.dims);
}

ScriptDims DimsOf(ScriptCall* call, const char* name) {
  const ScriptValue* value = call->Find(name);
  return value == nullptr || value->IsNumber() ? ScriptDims()
                                               : call->Tensor(name).dims;
}

void InferBinary(ScriptCall* call) {
  call->Give(Promoted(call, {"self", "other"}),
             call->Broadcast(DimsOf(call, "self"), DimsOf(call, "other")));
}

void InferDivision(ScriptCall* call) {
  const DType dtype = Promoted(call, {"self", "other"});
  const bool rounded = call->Has("rounding_mode");
  call->Give(IsFloating(dtype) || rounded ? dtype : DType::kFloat32,
             call->Broadcast(DimsOf(call, "self"), DimsOf(call, "other")));
}

void InferPower(ScriptCall* call) {
  call->Give(Promoted(call, {"self", "exponent"}),
             call->Broadcast(DimsOf(call, "self"), DimsOf(call, "exponent")));
}

void InferCompare(ScriptCall* call) {
  call->Give(DType::kBool,
             call->Broadcast(DimsOf(call, "self"), DimsOf(call, "other")));
}

void InferWhere(ScriptCall* call) {
  call->Give(Promoted(call, {"self", "other"}),
             call->Broadcast(
                 call->Tensor("condition").dims,
                 call->Broadcast(DimsOf(call, "self"), DimsOf(call, "other"))));
}

void InferMaskedFill(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(self.dtype, call->Broadcast(self.dims, call->Tensor("mask").dims));
}

void InferClampTensors(ScriptCall* call) {
  ScriptDims dims = call->Tensor("self").dims;
  for (const char* name : {"min", "max"})
    if (call->Has(name)) dims = call->Broadcast(dims, DimsOf(call, name));
  call->Give(Promoted(call, {"self", "min", "max"}), dims);
}

void InferTo(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  DType dtype = self.dtype;
  if (call->Has("other")) dtype = call->Tensor("other").dtype;
  call->Give(call->TypeOr("dtype", dtype), self.dims);
}

ScriptOperators Comparisons() {
  ScriptOperators rows;
  for (const auto& [name, tensor, scalar] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"eq", "eq.Tensor", "eq.Scalar"},
           {"ge", "ge.Tensor", "ge.Scalar"},
           {"gt", "gt.Tensor", "gt.Scalar"},
           {"le", "le.Tensor", "le.Scalar"},
           {"lt", "lt.Tensor", "lt.Scalar"},
           {"ne", "ne.Tensor", "ne.Scalar"}}) {
    rows.push_back({name, tensor, "t self, t other", InferCompare});
    rows.push_back({name, scalar, "t self, s other", InferCompare});
  }
  for (const auto& [name, target] :
       std::vector<std::pair<const char*, const char*>>{
           {"__and__", "__and__.Tensor"},
           {"__or__", "__or__.Tensor"},
           {"bitwise_and", "bitwise_and.Tensor"},
           {"bitwise_or", "bitwise_or.Tensor"},
           {"logical_and", "logical_and.default"},
           {"logical_or", "logical_or.default"}})
    rows.push_back({name, target, "t self, t other", InferCompare});
  return rows;
}

ScriptOperators Unary() {
  ScriptOperators rows;
  for (const auto& [name, target] :
       std::vector<std::pair<const char*, const char*>>{
           {"atan", "atan.default"},
           {"cos", "cos.default"},
           {"erf", "erf.default"},
           {"exp", "exp.default"},
           {"log", "log.default"},
           {"log_sigmoid", "log_sigmoid.default"},
           {"reciprocal", "reciprocal.default"},
           {"rsqrt", "rsqrt.default"},
           {"sigmoid", "sigmoid.default"},
           {"sin", "sin.default"},
           {"sqrt", "sqrt.default"},
           {"tanh", "tanh.default"}})
    rows.push_back({name, target, "t self", FloatOfSelf});
  for (const auto& [name, target] :
       std::vector<std::pair<const char*, const char*>>{
           {"abs", "abs.default"},
           {"alias", "alias.default"},
           {"bitwise_not", "bitwise_not.default"},
           {"ceil", "ceil.default"},
           {"detach", "detach.default"},
           {"floor", "floor.default"},
           {"hardsigmoid", "hardsigmoid.default"},
           {"hardswish", "hardswish.default"},
           {"mish", "mish.default"},
           {"neg", "neg.default"},
           {"relu", "relu.default"},
           {"relu6", "relu6.default"},
           {"round", "round.default"},
           {"selu", "selu.default"},
           {"sign", "sign.default"},
           {"silu", "silu.default"}})
    rows.push_back({name, target, "t self", SameAsSelf});
  return rows;
}

}  // namespace

ScriptOperators ScriptElementwise() {
  ScriptOperators rows = {
      {"add", "add.Tensor", "t self, t other, s alpha", InferBinary},
      {"add", "add.Scalar", "t self, s other, s alpha", InferBinary},
      {"clamp", "clamp.default", "t self, s min, s max", SameAsSelf},
      {"clamp", "clamp.Tensor", "t self, o min, o max", InferClampTensors},
      {"clamp_max", "clamp_max.default", "t self, s max", SameAsSelf},
      {"clamp_min", "clamp_min.default", "t self, s min", SameAsSelf},
      {"clone", "clone.default", "t self, n memory_format", SameAsSelf},
      {"contiguous", "contiguous.default", "t self, n memory_format",
       SameAsSelf},
      {"div", "div.Tensor_mode", "t self, t other, n rounding_mode",
       InferDivision},
      {"div", "div.Tensor", "t self, t other", InferDivision},
      {"div", "div.Scalar", "t self, s other", InferDivision},
      {"dropout", "dropout.default", "t input, s p, n train", SameAsSelf},
      {"elu", "elu.default", "t self, s alpha, s scale, s input_scale",
       SameAsSelf},
      {"feature_dropout", "feature_dropout.default", "t input, s p, n train",
       SameAsSelf},
      {"fmod", "fmod.Tensor", "t self, t other", InferBinary},
      {"fmod", "fmod.Scalar", "t self, s other", InferBinary},
      {"gelu", "gelu.default", "t self, n approximate", SameAsSelf},
      {"hardtanh", "hardtanh.default", "t self, s min_val, s max_val",
       SameAsSelf},
      {"leaky_relu", "leaky_relu.default", "t self, s negative_slope",
       SameAsSelf},
      {"logical_not", "logical_not.default", "t self",
       [](ScriptCall* call) {
         call->Give(DType::kBool, call->Tensor("self").dims);
       }},
      {"masked_fill", "masked_fill.Tensor", "t self, t mask, t value",
       InferMaskedFill},
      {"masked_fill", "masked_fill.Scalar", "t self, t mask, s value",
       InferMaskedFill},
      {"maximum", "maximum.default", "t self, t other", InferBinary},
      {"max", "maximum.default", "t self, t other", InferBinary},
      {"minimum", "minimum.default", "t self, t other", InferBinary},
      {"min", "minimum.default", "t self, t other", InferBinary},
      {"mul", "mul.Tensor", "t self, t other", InferBinary},
      {"mul", "mul.Scalar", "t self, s other", InferBinary},
      {"pow", "pow.Tensor_Scalar", "t self, s exponent", InferPower},
      {"pow", "pow.Tensor_Tensor", "t self, t exponent", InferPower},
      {"prelu", "prelu.default", "t self, t weight", SameAsSelf},
      {"rsub", "rsub.Tensor", "t self, t other, s alpha", InferBinary},
      {"rsub", "rsub.Scalar", "t self, s other, s alpha", InferBinary},
      {"softplus", "softplus.default", "t self, s beta, s threshold",
       SameAsSelf},
      {"sub", "sub.Tensor", "t self, t other, s alpha", InferBinary},
      {"sub", "sub.Scalar", "t self, s other, s alpha", InferBinary},
      {"to", "to.dtype_layout",
       "t self, i dtype, n layout, n device, n pin_memory, n non_blocking, "
       "n copy, n memory_format",
       InferTo},
      {"to", "to.dtype", "t self, i dtype, b non_blocking, b copy, n format",
       InferTo},
      {"to", "to.device",
       "t self, d device, i dtype, b non_blocking, b copy, n memory_format",
       InferTo},
      {"to", "to.other", "t self, t other, n non_blocking, n copy", InferTo},
      {"type_as", "type_as.default", "t self, t other", InferTo},
      {"where", "where.self", "t condition, n self, n other", InferWhere},
  };
  for (const ScriptOperators& more : {Comparisons(), Unary()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace pd
