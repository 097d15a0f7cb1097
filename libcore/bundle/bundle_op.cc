// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/bundle_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

const VarDesc& UndeclaredVar() {
  static const auto* none = new VarDesc;
  return *none;
}

}  // namespace

absl::StatusOr<pd_run::DType> BundleType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return pd_run::DType::kFloat32;
    case DType::kInt64:
      return pd_run::DType::kInt64;
    case DType::kInt32:
      return pd_run::DType::kInt32;
    case DType::kUInt8:
      return pd_run::DType::kUint8;
    case DType::kBool:
      return pd_run::DType::kBool;
    default:
      return Unimplemented(
          "%s has no place in a bundle; expected float32, int64, int32, uint8 "
          "or bool",
          Name(dtype));
  }
}

absl::StatusOr<uint32_t> BundleBuilder::ValueOf(const std::string& variable) {
  if (const auto it = values.find(variable); it != values.end())
    return it->second;
  const auto param = model.params.find(variable);
  if (param == model.params.end())
    return NotFound("variable '%s' has no value", variable);
  BundleValue value;
  PD_ASSIGN_OR_RETURN(value.dtype, BundleType(param->second.dtype));
  value.constant = param->second;
  return values[variable] = graph.Add(std::move(value));
}

const Array* BundleBuilder::FindParam(const std::string& variable) const {
  for (const auto* all : {&model.params, &reshaped})
    if (const auto it = all->find(variable); it != all->end())
      return &it->second;
  return nullptr;
}

void BundleOp::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void BundleOp::Refuse(const std::string& why) {
  Fail(Unimplemented("%s", why));
}

const VarDesc& BundleOp::Var(const std::string& name) {
  const VarDesc* var = builder_->model.program.global().FindVar(name);
  if (var != nullptr) return *var;
  Fail(NotFound("variable '%s' is not declared", name));
  return UndeclaredVar();
}

bool BundleOp::Has(absl::string_view slot) const {
  const std::vector<std::string>& names = desc_.Input(slot);
  return !names.empty() && !names[0].empty() && names[0] != kEmptyVar;
}

BundleOp::Inputs BundleOp::Ins(absl::string_view slot) {
  Ignore(slot);
  Inputs inputs;
  for (const std::string& name : desc_.Input(slot)) {
    const auto value = builder_->ValueOf(name);
    Fail(value.status());
    inputs.push_back(value.ok() ? *value : pd_run::kNoValue);
  }
  return inputs;
}

uint32_t BundleOp::In(absl::string_view slot) {
  const Inputs inputs = Ins(slot);
  if (inputs.size() == 1) return inputs[0];
  Fail(InvalidArgument("input '%s' holds %d variables; expected 1", slot,
                       inputs.size()));
  return pd_run::kNoValue;
}

uint32_t BundleOp::OptionalIn(absl::string_view slot) {
  return Has(slot) ? In(slot) : pd_run::kNoValue;
}

bool BundleOp::IsParam(absl::string_view slot) const {
  return builder_->FindParam(desc_.In(slot)) != nullptr;
}

const Array* BundleOp::ParamNamed(const std::string& name,
                                  absl::string_view slot) {
  const Array* param = builder_->FindParam(name);
  if (param == nullptr) {
    Refuse(absl::StrCat("its '", slot, "' is no parameter"));
  } else if (param->dtype != DType::kFloat32) {
    Refuse(absl::StrCat("its '", slot, "' is ", Name(param->dtype),
                        "; expected float32"));
    return nullptr;
  }
  return param;
}

const Array* BundleOp::Param(absl::string_view slot) {
  Ignore(slot);
  return ParamNamed(desc_.In(slot), slot);
}

std::vector<const Array*> BundleOp::Params(absl::string_view slot) {
  Ignore(slot);
  std::vector<const Array*> params;
  for (const std::string& name : desc_.Input(slot)) {
    params.push_back(ParamNamed(name, slot));
    if (params.back() == nullptr) return {};
  }
  return params;
}

const Shape& BundleOp::ShapeOf(absl::string_view slot) {
  return Has(slot) ? Var(desc_.In(slot)).shape : UndeclaredVar().shape;
}

DType BundleOp::TypeOf(absl::string_view slot) {
  const std::vector<std::string>& names = desc_.Input(slot);
  return names.empty() ? DType::kFloat32 : Var(names[0]).dtype;
}

DType BundleOp::OutType(absl::string_view slot) {
  const std::vector<std::string>& names = desc_.Output(slot);
  return names.empty() ? DType::kFloat32 : Var(names[0]).dtype;
}

void BundleOp::ExpectFloat(absl::string_view slot) {
  if (const DType dtype = TypeOf(slot); dtype != DType::kFloat32)
    Refuse(absl::StrCat("'", slot, "' is ", Name(dtype), "; expected float32"));
}

uint32_t BundleOp::IntVector(absl::string_view tensor, absl::string_view list) {
  if (Has(list)) {
    Inputs parts;
    for (const uint32_t part : Ins(list))
      parts.push_back(Cast(Reshape(pd_run::ReshapeMode::kReshape, part, {1}),
                           pd_run::DType::kInt64));
    // A list comes before a tensor where both are given.
    Ignore(tensor);
    return Emit("concat", parts, {0});
  }
  return OptionalIn(tensor);
}

const Attribute& BundleOp::At(const char* name) {
  static const Attribute kNone = int32_t{0};
  if (const Attribute* a = desc_.FindAttr(name)) return *a;
  Fail(InvalidArgument("attr '%s' is missing", name));
  return kNone;
}

int64_t BundleOp::Int(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<int32_t>(&a)) return *v;
  if (const auto* v = std::get_if<int64_t>(&a)) return *v;
  if (const auto* v = std::get_if<bool>(&a)) return *v ? 1 : 0;
  Fail(InvalidArgument("attr '%s' is of type %s; expected int", name,
                       Name(pd::TypeOf(a))));
  return 0;
}

double BundleOp::Float(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<float>(&a)) return *v;
  if (const auto* v = std::get_if<double>(&a)) return *v;
  if (const auto* v = std::get_if<ScalarAttr>(&a)) {
    if (const auto* d = std::get_if<double>(&v->value)) return *d;
    if (const auto* i = std::get_if<int64_t>(&v->value))
      return static_cast<double>(*i);
  }
  return static_cast<double>(Int(name));
}

std::string BundleOp::Str(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<std::string>(&a)) return *v;
  Fail(InvalidArgument("attr '%s' is of type %s; expected string", name,
                       Name(pd::TypeOf(a))));
  return "";
}

BundleOp::Ints BundleOp::IntsOf(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<std::vector<int32_t>>(&a))
    return {v->begin(), v->end()};
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return *v;
  return {Int(name)};
}

uint32_t BundleOp::Constant(Array array) {
  BundleValue value;
  const auto dtype = BundleType(array.dtype);
  Fail(dtype.status());
  if (dtype.ok()) value.dtype = *dtype;
  value.constant = std::move(array);
  return builder_->graph.Add(std::move(value));
}

// The layer of the job or of PaddlePaddle's name scope, else the first result.
std::string BundleOp::Layer() const {
  const std::string scope = NameScopeOf(desc_);
  if (scope.size() > 1) return scope;
  for (const auto& slot : desc_.outputs)
    for (const std::string& name : slot.second) return name;
  return "";
}

BundleNode* BundleOp::AddNode(const char* kernel, Inputs inputs, Ints ints,
                              std::vector<float> floats) {
  BundleNode node;
  node.kernel = kernel;
  node.layer = Layer();
  node.inputs = std::move(inputs);
  node.ints = std::move(ints);
  node.floats = std::move(floats);
  while (!node.inputs.empty() && node.inputs.back() == pd_run::kNoValue)
    node.inputs.pop_back();
  builder_->graph.nodes.push_back(std::move(node));
  return &builder_->graph.nodes.back();
}

uint32_t BundleOp::Emit(const char* kernel, Inputs inputs, Ints ints,
                        std::vector<float> floats) {
  const uint32_t result = builder_->graph.Add({});
  AddNode(kernel, std::move(inputs), std::move(ints), std::move(floats))
      ->outputs = {result};
  return result;
}

BundleOp::Inputs BundleOp::EmitAll(const char* kernel, size_t results,
                                   Inputs inputs, Ints ints) {
  Inputs values;
  for (size_t i = 0; i < results; ++i)
    values.push_back(builder_->graph.Add({}));
  AddNode(kernel, std::move(inputs), std::move(ints), {})->outputs = values;
  return values;
}

void BundleOp::Give(absl::string_view slot, const char* kernel, Inputs inputs,
                    Ints ints, std::vector<float> floats) {
  Alias(slot,
        Emit(kernel, std::move(inputs), std::move(ints), std::move(floats)));
}

void BundleOp::GiveAll(absl::string_view slot, const char* kernel,
                       Inputs inputs, Ints ints) {
  AliasAll(slot, EmitAll(kernel, desc_.Output(slot).size(), std::move(inputs),
                         std::move(ints)));
}

void BundleOp::AliasParam(absl::string_view slot, Array param) {
  builder_->reshaped[desc_.Out(slot)] = param;
  Alias(slot, Constant(std::move(param)));
}

void BundleOp::AliasAll(absl::string_view slot, const Inputs& values) {
  const std::vector<std::string>& names = desc_.Output(slot);
  if (names.size() != values.size())
    return Fail(InvalidArgument("output '%s' holds %d variables; expected %d",
                                slot, names.size(), values.size()));
  for (size_t i = 0; i < names.size(); ++i)
    builder_->values[names[i]] = values[i];
}

void BundleOp::Alias(absl::string_view slot, uint32_t value) {
  const std::string& name = desc_.Out(slot);
  if (name.empty() || name == kEmptyVar)
    Fail(InvalidArgument("output '%s' is missing", slot));
  else
    builder_->values[name] = value;
}

void BundleOp::AliasScalar(absl::string_view slot, uint32_t value,
                           bool is_scalar) {
  const std::vector<std::string>& names = desc_.Output(slot);
  if (is_scalar && !names.empty() && Var(names[0]).shape.size() == 1)
    value = Reshape(pd_run::ReshapeMode::kReshape, value, {1});
  Alias(slot, value);
}

uint32_t BundleOp::Unary(pd_run::Function function, uint32_t x, float a,
                         float b, float c) {
  return Emit("unary", {x}, {static_cast<int64_t>(function)}, {a, b, c});
}

uint32_t BundleOp::BinaryOf(pd_run::Binary operation, uint32_t a, uint32_t b,
                            int64_t axis) {
  return Emit("binary", {a, b}, {static_cast<int64_t>(operation), axis, 0},
              NoFunction());
}

uint32_t BundleOp::Reshape(pd_run::ReshapeMode mode, uint32_t x,
                           const Ints& dims) {
  Ints ints = {static_cast<int64_t>(mode)};
  ints.insert(ints.end(), dims.begin(), dims.end());
  return Emit("reshape", {x}, std::move(ints));
}

uint32_t BundleOp::Cast(uint32_t x, pd_run::DType to) {
  return Emit("cast", {x}, {static_cast<int64_t>(to)});
}

absl::Status BundleOp::Finish() {
  PD_RETURN_IF_ERROR(status_);
  for (const auto& [slot, names] : desc_.inputs)
    if (!names.empty() && asked_.count(slot) == 0)
      return Unimplemented("its input '%s' has no counterpart in a bundle",
                           slot);
  return absl::OkStatus();
}

}  // namespace pd
