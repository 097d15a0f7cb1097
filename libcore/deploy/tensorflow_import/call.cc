// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tensorflow_import/call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/torch_window.h"
#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/node.h"

namespace pd {
namespace {

using AttrKind = TfAttr::Kind;

// Nodes that hand a value on are looked through so often.
constexpr int kMaxLookedThrough = 64;

}  // namespace

void MakePlain(TfValue* value, TfBuild* build) {
  if (!value->plain.empty() || value->first.empty()) return;
  OnnxFileNode node;
  node.op_type = "Transpose";
  node.name = value->name;
  node.inputs = {value->first};
  node.outputs = {value->name};
  node.attrs["perm"] = OnnxInts(ChannelsLast(value->rank));
  build->graph.nodes.push_back(std::move(node));
  value->plain = value->name;
}

const Array* TfBuild::Constant(const std::string& name) const {
  for (const TfBuild* build = this; build != nullptr; build = build->outer) {
    const auto array = build->graph.initializers.find(name);
    if (array != build->graph.initializers.end()) return &array->second;
  }
  return nullptr;
}

TfValue* TfCall::Value(size_t i) {
  if (!ok()) return nullptr;
  if (i >= node_.inputs.size()) {
    Fail(InvalidArgument("it has %d inputs; input %d is needed",
                         node_.inputs.size(), i));
    return nullptr;
  }
  const auto value = build_->values.find(node_.inputs[i]);
  if (value != build_->values.end()) return value->second.get();
  Fail(Unimplemented("it reads '%s', an output that is not supported",
                     node_.inputs[i]));
  return nullptr;
}

std::string TfCall::In(size_t i) {
  TfValue* value = Value(i);
  if (value == nullptr) return "";
  if (value->list != nullptr) {
    Fail(Unimplemented("it reads a list of tensors, '%s'", node_.inputs[i]));
    return "";
  }
  MakePlain(value, build_);
  return value->plain;
}

int64_t TfCall::Rank(size_t i) {
  const TfValue* value = Value(i);
  return value == nullptr ? -1 : value->rank;
}

std::string TfCall::InFirst(size_t i) {
  TfValue* value = Value(i);
  if (value == nullptr) return "";
  if (!value->first.empty()) return value->first;
  if (value->rank < 3 || value->rank > 5) {
    Fail(Unimplemented("'%s' has a number of axes that is not known",
                       node_.inputs[i]));
    return "";
  }
  value->first = Transpose(value->plain, ChannelsFirst(value->rank));
  return value->first;
}

bool TfCall::IsFirst(size_t i) {
  const TfValue* value = Value(i);
  return value != nullptr && !value->first.empty();
}

const Array* TfCall::Known(size_t i) {
  const TfValue* value = Value(i);
  return value == nullptr ? nullptr : build_->Constant(value->plain);
}

std::optional<TfCall::Ints> TfCall::KnownInts(size_t i) {
  const Array* array = Known(i);
  return array == nullptr ? std::nullopt : OnnxInts(*array);
}

TfCall::Ints TfCall::NeedInts(size_t i) {
  if (auto ints = KnownInts(i)) return *ints;
  Fail(Unimplemented("input %d is no constant", i));
  return {};
}

std::string TfCall::InInt64(size_t i) {
  const Array* array = Known(i);
  const std::string x = In(i);
  return array != nullptr ? x : Cast(x, DType::kInt64);
}

const TfNode* TfCall::Maker(const TfNode& of, size_t i, const char* op) const {
  const TfNode* node = &of;
  for (int steps = 0; steps < kMaxLookedThrough; ++steps) {
    if (i >= node->inputs.size()) return nullptr;
    const auto made = build_->nodes.find(node->inputs[i]);
    if (made == build_->nodes.end()) return nullptr;
    node = made->second;
    if (node->op == op) return node;
    if (node->op != "Identity") return nullptr;
    i = 0;
  }
  return nullptr;
}

const TfAttr* TfCall::Find(const char* name) const {
  const auto attr = node_.attrs.find(name);
  return attr == node_.attrs.end() ? nullptr : &attr->second;
}

int64_t TfCall::Int(const char* name, int64_t otherwise) {
  const TfAttr* attr = Find(name);
  if (attr == nullptr) return otherwise;
  if (attr->kind != AttrKind::kInt)
    Fail(InvalidArgument("attribute '%s' is no integer", name));
  return attr->i;
}

double TfCall::Float(const char* name, double otherwise) {
  const TfAttr* attr = Find(name);
  if (attr == nullptr) return otherwise;
  if (attr->kind != AttrKind::kFloat)
    Fail(InvalidArgument("attribute '%s' is no number", name));
  return attr->f;
}

std::string TfCall::Text(const char* name, const char* otherwise) {
  const TfAttr* attr = Find(name);
  if (attr == nullptr) return otherwise;
  if (attr->kind != AttrKind::kString)
    Fail(InvalidArgument("attribute '%s' is no text", name));
  return attr->text;
}

TfCall::Ints TfCall::IntList(const char* name) {
  const TfAttr* attr = Find(name);
  if (attr == nullptr) return {};
  if (attr->kind != AttrKind::kInts)
    Fail(InvalidArgument("attribute '%s' is no list of integers", name));
  return attr->ints;
}

std::vector<std::string> TfCall::TextList(const char* name) {
  const TfAttr* attr = Find(name);
  if (attr == nullptr) return {};
  if (attr->kind != AttrKind::kStrings)
    Fail(InvalidArgument("attribute '%s' is no list of texts", name));
  return attr->strings;
}

DType TfCall::Type(const char* name, DType otherwise) {
  if (Find(name) == nullptr) return otherwise;
  const int64_t number = Int(name, 0);
  const auto dtype = DTypeFromTensorflow(number);
  if (dtype.has_value()) return *dtype;
  Fail(Unimplemented("tensors of %s", TensorflowTypeName(number)));
  return otherwise;
}

std::string TfCall::Emit(const char* op_type, const Names& inputs,
                         Attrs attrs) {
  return EmitMany(op_type, inputs, 1, std::move(attrs))[0];
}

TfCall::Names TfCall::EmitMany(const char* op_type, const Names& inputs,
                               size_t outputs, Attrs attrs) {
  if (!ok()) return Names(outputs);
  OnnxFileNode node;
  node.op_type = op_type;
  absl::string_view own = op_type;
  if (absl::ConsumePrefix(&own, "tensorflow:")) {
    node.domain = "tensorflow";
    node.op_type = std::string(own);
  }
  node.name = node_.name;
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(
        absl::StrCat(node.name, "@", build_->shared->next++));
  build_->graph.nodes.push_back(node);
  return node.outputs;
}

std::string TfCall::Constant(const Array& array) {
  if (!ok()) return "";
  const std::string name =
      absl::StrCat(node_.name, "@", build_->shared->next++);
  build_->graph.initializers[name] = array;
  return name;
}

std::string TfCall::ConstInts(const Ints& values) {
  return Constant(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string TfCall::Scalar(double value, DType dtype) {
  return Constant(OnnxArray(dtype, {}, {value}));
}

std::string TfCall::Cast(const std::string& x, DType dtype) {
  const auto type = OnnxElementType(dtype);
  if (type.ok()) return Emit("Cast", {x}, {{"to", OnnxInt(*type)}});
  Fail(type.status());
  return "";
}

std::string TfCall::Transpose(const std::string& x, const Ints& perm) {
  return Emit("Transpose", {x}, {{"perm", OnnxInts(perm)}});
}

std::string TfCall::TransposedFilter(size_t i, const Ints& perm,
                                     const char* ending) {
  const Array* known = Known(i);
  const std::string value = In(i);
  if (known == nullptr || known->shape.size() != perm.size())
    return Transpose(value, perm);
  const std::string transposed = absl::StrCat(value, ending);
  if (build_->graph.initializers.count(transposed) > 0) return transposed;
  const std::vector<int64_t> strides = RowMajorStrides(known->shape);
  std::vector<int64_t> extents, steps;
  for (const int64_t axis : perm) {
    extents.push_back(known->shape[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  std::byte* to = nullptr;
  auto array = NewArray(known->dtype, extents, &to);
  if (!array.ok()) {
    Fail(array.status());
    return "";
  }
  if (known->size() > 0)
    Gather({extents, steps}, known->bytes.get(), SizeOf(known->dtype), to);
  build_->graph.initializers[transposed] = *std::move(array);
  return transposed;
}

std::string TfCall::OutName(size_t i) const {
  return i == 0 ? node_.name : absl::StrCat(node_.name, ":", i);
}

// A value that this call has made gets the name; `value` otherwise.
std::string TfCall::Named(const std::string& value, const std::string& name) {
  auto& nodes = build_->graph.nodes;
  bool made = false;
  for (size_t k = first_node_; k < nodes.size(); ++k)
    made = made || std::count(nodes[k].outputs.begin(), nodes[k].outputs.end(),
                              value) > 0;
  if (!made || !absl::StrContains(value, '@')) return value;
  for (size_t k = first_node_; k < nodes.size(); ++k)
    for (Names* names : {&nodes[k].inputs, &nodes[k].outputs})
      std::replace(names->begin(), names->end(), value, name);
  return name;
}

void TfCall::Give(const std::string& value, int64_t rank, size_t i) {
  if (!ok()) return;
  auto given = std::make_shared<TfValue>();
  given->name = OutName(i);
  given->plain = Named(value, given->name);
  given->rank = rank;
  build_->values[given->name] = std::move(given);
}

void TfCall::GiveFirst(const std::string& value, int64_t rank, size_t i) {
  if (!ok()) return;
  auto given = std::make_shared<TfValue>();
  given->name = OutName(i);
  given->first = Named(value, absl::StrCat(given->name, ".channels_first"));
  given->rank = rank;
  build_->values[given->name] = std::move(given);
}

void TfCall::GiveValue(TfValue value, size_t i) {
  if (!ok()) return;
  value.name = OutName(i);
  auto given = std::make_shared<TfValue>(std::move(value));
  build_->values[given->name] = given;
}

void TfCall::GiveSame(size_t input, size_t i) {
  if (Value(input) != nullptr)
    build_->values[OutName(i)] = build_->values.at(node_.inputs[input]);
}

bool TfCall::Wants(size_t i) const {
  return build_->read.count(OutName(i)) > 0;
}

}  // namespace pd
