// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_import/call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/torch_window.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

using ArgKind = TorchArgument::Kind;

template <typename T>
Array NumberArray(Shape shape, double value) {
  return MakeArray<T>(std::move(shape), {static_cast<T>(value)});
}

}  // namespace

const TorchArgument* TorchCall::Find(const char* name) const {
  for (const auto& [parameter, argument] : node_.inputs)
    if (parameter == name && argument.kind != ArgKind::kNone) return &argument;
  return nullptr;
}

bool TorchCall::Has(const char* name) const { return Find(name) != nullptr; }

std::string TorchCall::TensorOr(const char* name) {
  const TorchArgument* argument = Find(name);
  if (argument == nullptr || !ok()) return "";
  if (argument->kind != ArgKind::kTensor) {
    Fail(InvalidArgument("'%s' is no tensor", name));
    return "";
  }
  const auto value = build_->values.find(argument->names[0]);
  if (value != build_->values.end()) return value->second;
  Fail(DataLoss("value '%s' is made by no node before it", argument->names[0]));
  return "";
}

std::string TorchCall::Tensor(const char* name) {
  if (!Has(name)) Fail(InvalidArgument("it has no '%s'", name));
  return TensorOr(name);
}

TorchCall::Names TorchCall::Tensors(const char* name) {
  const TorchArgument* argument = Find(name);
  Names names;
  if (argument == nullptr || argument->kind != ArgKind::kTensors) {
    Fail(InvalidArgument("'%s' is no list of tensors", name));
    return names;
  }
  for (const std::string& element : argument->names) {
    const auto value = build_->values.find(element);
    if (value == build_->values.end())
      Fail(DataLoss("value '%s' is made by no node before it", element));
    else
      names.push_back(value->second);
  }
  return names;
}

int64_t TorchCall::Int(const char* name, int64_t otherwise) {
  const TorchArgument* argument = Find(name);
  if (argument == nullptr) return otherwise;
  if (argument->kind == ArgKind::kInt) return argument->ints[0];
  Fail(Unimplemented("'%s' is no integer that is known", name));
  return otherwise;
}

TorchCall::Ints TorchCall::IntList(const char* name) {
  const TorchArgument* argument = Find(name);
  if (argument == nullptr) return {};
  if (argument->kind == ArgKind::kInt || argument->kind == ArgKind::kInts) {
    if (std::find(argument->ints.begin(), argument->ints.end(), kTorchSymbol) !=
        argument->ints.end())
      Fail(Unimplemented("'%s' has an integer that is not known", name));
    return argument->ints;
  }
  Fail(InvalidArgument("'%s' is no list of integers", name));
  return {};
}

TorchCall::Ints TorchCall::IntsOf(const char* name, size_t count,
                                  int64_t otherwise) {
  Ints ints = IntList(name);
  if (ints.empty()) ints = {otherwise};
  if (ints.size() == 1) ints.resize(count, ints[0]);
  if (ints.size() != count) {
    Fail(InvalidArgument("'%s' is %s; expected %d integers", name,
                         ToString(ints), count));
    ints.resize(count, otherwise);
  }
  return ints;
}

double TorchCall::Number(const char* name, double otherwise) {
  const TorchArgument* argument = Find(name);
  if (argument == nullptr) return otherwise;
  if (argument->kind == ArgKind::kFloat) return argument->floats[0];
  if (argument->kind == ArgKind::kInt)
    return static_cast<double>(argument->ints[0]);
  Fail(Unimplemented("'%s' is no number that is known", name));
  return otherwise;
}

std::string TorchCall::Text(const char* name, const char* otherwise) {
  const TorchArgument* argument = Find(name);
  return argument == nullptr || argument->kind != ArgKind::kString
             ? otherwise
             : argument->text;
}

std::string TorchCall::TensorIfAny(const char* name) {
  const TorchArgument* argument = Find(name);
  return argument != nullptr && argument->kind == ArgKind::kTensor
             ? Tensor(name)
             : "";
}

const TorchValue* TorchCall::ValueOf(const std::string& name) {
  const auto value = build_->exported->values.find(name);
  if (value != build_->exported->values.end()) return &value->second;
  Fail(DataLoss("the file does not say the shape of value '%s'", name));
  return nullptr;
}

const TorchValue* TorchCall::ArgumentValue(const char* name) {
  const TorchArgument* argument = Find(name);
  return argument == nullptr || argument->kind != ArgKind::kTensor
             ? nullptr
             : ValueOf(argument->names[0]);
}

const TorchValue* TorchCall::OutValue(size_t i) {
  return i < outputs().size() ? ValueOf(outputs()[i]) : nullptr;
}

DType TorchCall::TypeOfValue(const TorchValue* value) {
  if (value == nullptr) return DType::kFloat32;
  const auto dtype = DTypeFromTorch(value->scalar_type);
  if (!dtype.ok()) Fail(dtype.status());
  return dtype.ok() ? *dtype : DType::kFloat32;
}

const Shape& TorchCall::ShapeOf(const char* name) {
  static const Shape none;
  const TorchValue* value = ArgumentValue(name);
  if (value != nullptr) return value->shape;
  Fail(InvalidArgument("'%s' is no tensor", name));
  return none;
}

DType TorchCall::TypeOf(const char* name) {
  return TypeOfValue(ArgumentValue(name));
}

const TorchCall::Names& TorchCall::outputs() {
  if (outputs_.empty())
    for (const TorchArgument& output : node_.outputs)
      outputs_.insert(outputs_.end(), output.names.begin(), output.names.end());
  return outputs_;
}

const Shape& TorchCall::OutShape(size_t i) {
  static const Shape none;
  const TorchValue* value = OutValue(i);
  if (value != nullptr) return value->shape;
  Fail(DataLoss("it has no output %d", i));
  return none;
}

DType TorchCall::OutType(size_t i) { return TypeOfValue(OutValue(i)); }

int64_t TorchCall::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  // An axis of a tensor without any is its only element.
  if (rank > 0 || axis < -1 || axis > 0)
    Fail(InvalidArgument("axis %d of a tensor of %d dimensions", axis, rank));
  return 0;
}

int64_t TorchCall::Extent(const char* name, int64_t axis) {
  const Shape& shape = ShapeOf(name);
  axis = Axis(axis, static_cast<int64_t>(shape.size()));
  if (!ok() || shape.empty()) return 1;
  const int64_t extent = shape[static_cast<size_t>(axis)];
  if (extent < 0)
    Fail(Unimplemented("axis %d of '%s' has an extent that is not known", axis,
                       name));
  return extent;
}

std::string TorchCall::Emit(const char* op_type, const Names& inputs,
                            Attrs attrs) {
  return EmitMany(op_type, inputs, 1, std::move(attrs))[0];
}

TorchCall::Names TorchCall::EmitMany(const char* op_type, const Names& inputs,
                                     size_t outputs, Attrs attrs) {
  if (!ok()) return Names(outputs);
  OnnxFileNode node;
  node.op_type = op_type;
  node.name =
      TorchCall::outputs().empty() ? node_.target : TorchCall::outputs()[0];
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(absl::StrCat(node.name, "@", build_->next++));
  build_->graph.nodes.push_back(node);
  return node.outputs;
}

std::string TorchCall::Constant(const Array& array) {
  if (!ok()) return "";
  const std::string name = absl::StrCat("constant_", build_->next++);
  build_->graph.initializers[name] = array;
  return name;
}

std::string TorchCall::ConstInts(const Ints& values) {
  return Constant(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string TorchCall::Scalar(double value, DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return Constant(NumberArray<int64_t>({}, value));
    case DType::kInt32:
      return Constant(NumberArray<int32_t>({}, value));
    case DType::kFloat64:
      return Constant(NumberArray<double>({}, value));
    case DType::kFloat32:
      return Constant(NumberArray<float>({}, value));
    default:
      return Cast(Constant(NumberArray<double>({}, value)), dtype);
  }
}

std::string TorchCall::Cast(const std::string& x, DType dtype) {
  const auto type = OnnxElementType(dtype);
  if (type.ok()) return Emit("Cast", {x}, {{"to", OnnxInt(*type)}});
  Fail(type.status());
  return "";
}

std::string TorchCall::Reshape(const std::string& x, size_t i) {
  Shape shape = OutShape(i);
  const Shape from = Has("self") ? ShapeOf("self") : Shape();
  const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
  // A symbol that stands alone is what is left: two of them may differ.
  const bool alone =
      std::count(shape.begin(), shape.end(), -1) == 1 && shape[0] == -1;
  if (!empty && !shape.empty() && !from.empty() && shape[0] == from[0] &&
      !alone)
    shape[0] = 0;
  if (std::count(shape.begin(), shape.end(), -1) > 1)
    Fail(Unimplemented("a shape with several extents that are not known"));
  return Emit("Reshape", {x, ConstInts(shape)},
              {{"allowzero", OnnxInt(empty ? 1 : 0)}});
}

std::string TorchCall::Transpose(const std::string& x, const Ints& perm) {
  return Emit("Transpose", {x}, {{"perm", OnnxInts(perm)}});
}

std::string TorchCall::TransposedWeight(const char* name) {
  const std::string value = Tensor(name);
  const Array* weight = Weight(name);
  if (weight == nullptr || weight->shape.size() != 2)
    return Transpose(value, {1, 0});
  const std::string transposed = absl::StrCat(value, ".T");
  if (build_->graph.initializers.count(transposed) > 0) return transposed;
  const int64_t rows = weight->shape[0], columns = weight->shape[1];
  const size_t size = SizeOf(weight->dtype);
  std::byte* to = nullptr;
  auto array = NewArray(weight->dtype, {columns, rows}, &to);
  if (!array.ok()) {
    Fail(array.status());
    return "";
  }
  if (rows > 0 && columns > 0)
    Gather({{columns, rows}, {1, columns}}, weight->bytes.get(), size, to);
  build_->graph.initializers[transposed] = *std::move(array);
  return transposed;
}

const Array* TorchCall::Weight(const char* name) const {
  const TorchArgument* argument = Find(name);
  if (argument == nullptr || argument->kind != ArgKind::kTensor) return nullptr;
  const auto value = build_->values.find(argument->names[0]);
  if (value == build_->values.end()) return nullptr;
  const auto weight = build_->graph.initializers.find(value->second);
  return weight == build_->graph.initializers.end() ? nullptr : &weight->second;
}

bool TorchCall::Wants(size_t i) {
  return i < outputs().size() && build_->read.count(outputs()[i]) > 0;
}

void TorchCall::Give(const std::string& value, size_t i) {
  if (!ok()) return;
  if (i >= outputs().size()) return Fail(DataLoss("it has no output %d", i));
  const std::string& name = outputs()[i];
  bool made = false;
  auto& nodes = build_->graph.nodes;
  for (size_t k = first_node_; k < nodes.size(); ++k)
    made = made || std::count(nodes[k].outputs.begin(), nodes[k].outputs.end(),
                              value) > 0;
  if (!made || build_->graph.initializers.count(name) > 0 ||
      std::count(outputs().begin(), outputs().end(), value) > 0) {
    build_->values[name] = value;
    return;
  }
  for (size_t k = first_node_; k < nodes.size(); ++k)
    for (Names* names : {&nodes[k].inputs, &nodes[k].outputs})
      std::replace(names->begin(), names->end(), value, name);
  build_->values[name] = name;
}

}  // namespace pd
