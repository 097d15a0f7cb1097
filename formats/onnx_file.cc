// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_file.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/onnx.pb.h"
#include "formats/proto_fields.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;
namespace format = onnx_format;

using Attrs = std::map<std::string, OnnxFileAttr>;

// ONNX's element types by number, and what holds them here.
struct ElementType {
  const char* name;
  std::optional<DType> dtype;
};
constexpr ElementType kElementTypes[] = {
    {"undefined", std::nullopt},      {"float", DType::kFloat32},
    {"uint8", DType::kUInt8},         {"int8", DType::kInt8},
    {"uint16", std::nullopt},         {"int16", DType::kInt16},
    {"int32", DType::kInt32},         {"int64", DType::kInt64},
    {"string", std::nullopt},         {"bool", DType::kBool},
    {"float16", DType::kFloat16},     {"double", DType::kFloat64},
    {"uint32", std::nullopt},         {"uint64", std::nullopt},
    {"complex64", DType::kComplex64}, {"complex128", DType::kComplex128},
    {"bfloat16", DType::kBFloat16},   {"float8e4m3fn", std::nullopt},
    {"float8e4m3fnuz", std::nullopt}, {"float8e5m2", std::nullopt},
    {"float8e5m2fnuz", std::nullopt}, {"uint4", std::nullopt},
    {"int4", std::nullopt},
};

// The bytes of a tensor in a file of their own.
absl::StatusOr<Array> ReadExternal(const format::Tensor& tensor, DType dtype,
                                   Shape shape, int64_t bytes,
                                   const std::string& folder) {
  if (folder.empty())
    return InvalidArgument("its data lie in another file, which is not read");
  std::string location;
  uint64_t offset = 0, length = static_cast<uint64_t>(bytes);
  for (const format::KeyValue& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    uint64_t* number = entry.key() == "offset"   ? &offset
                       : entry.key() == "length" ? &length
                                                 : nullptr;
    if (number != nullptr && !absl::SimpleAtoi(entry.value(), number))
      return DataLoss("external data: %s is '%s'", entry.key(), entry.value());
  }
  if (location.empty() || location.find('\0') != std::string::npos)
    return DataLoss("external data have no location");
  // Links are followed before it is asked whether the file lies in the folder.
  std::error_code error;
  const fs::path base = fs::weakly_canonical(folder, error);
  const fs::path path = fs::weakly_canonical(base / location, error);
  const auto [in_base, in_path] =
      std::mismatch(base.begin(), base.end(), path.begin(), path.end());
  if (error || in_base != base.end() || in_path == path.end())
    return PermissionDenied(
        "external data at '%s' lie outside of the model's folder", location);
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path.string()));
  if (length != static_cast<uint64_t>(bytes))
    return DataLoss("external data have %d bytes; shape %s of %s needs %d",
                    length, ToString(shape), Name(dtype), bytes);
  if (offset > file.size || length > file.size - offset)
    return DataLoss("external data at %d, %d bytes; '%s' has %d", offset,
                    length, path.string(), file.size);
  std::byte* copy = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, std::move(shape), &copy));
  if (length > 0) std::memcpy(copy, file.data.get() + offset, length);
  return array;
}

// Copies the numbers of a typed field; `Stored` is what the dtype is made of.
template <typename Stored, typename Field>
absl::StatusOr<Array> FromField(const Field& field, DType dtype, Shape shape,
                                int64_t bytes) {
  if (static_cast<int64_t>(field.size()) !=
      bytes / static_cast<int64_t>(sizeof(Stored)))
    return DataLoss("it holds %d numbers; its shape is %s of %s", field.size(),
                    ToString(shape), Name(dtype));
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, std::move(shape), &out));
  for (const auto value : field) {
    const Stored stored = static_cast<Stored>(value);
    std::memcpy(out, &stored, sizeof(stored));
    out += sizeof(stored);
  }
  return array;
}

// The elements of an unsigned type, which are here as signed ones of as many
// bits, in the type that holds them.
template <typename Stored, typename Held>
absl::StatusOr<Array> ExtendedTo(DType holder, const Array& array) {
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(Array held, NewArray(holder, array.shape, &out));
  for (int64_t i = 0; i < array.size(); ++i) {
    const Held value = reinterpret_cast<const Stored*>(array.bytes.get())[i];
    std::memcpy(out + static_cast<size_t>(i) * sizeof(Held), &value,
                sizeof(Held));
  }
  return held;
}

absl::StatusOr<Array> FromTypedField(const format::Tensor& tensor, DType dtype,
                                     Shape shape, int64_t bytes) {
  const int32_t bits = OnnxUnsignedBits(tensor.data_type());
  if (bits == 32)
    return FromField<uint32_t>(tensor.uint64_data(), dtype, shape, bytes);
  if (bits == 64)
    return FromField<uint64_t>(tensor.uint64_data(), dtype, shape, bytes);
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return FromField<float>(tensor.float_data(), dtype, shape, bytes);
    case DType::kFloat64:
    case DType::kComplex128:
      return FromField<double>(tensor.double_data(), dtype, shape, bytes);
    case DType::kInt64:
      return FromField<int64_t>(tensor.int64_data(), dtype, shape, bytes);
    case DType::kInt32:
      return FromField<int32_t>(tensor.int32_data(), dtype, shape, bytes);
    case DType::kBool: {
      const auto& field = tensor.int32_data();
      std::vector<uint8_t> bits;
      for (const int32_t value : field) bits.push_back(value != 0);
      return FromField<uint8_t>(bits, dtype, shape, bytes);
    }
    default:
      break;
  }
  if (SizeOf(dtype) == 1)
    return FromField<uint8_t>(tensor.int32_data(), dtype, shape, bytes);
  return FromField<uint16_t>(tensor.int32_data(), dtype, shape, bytes);
}

// Bytes other than 0 and 1 in a bool are no value of its type.
absl::Status CheckBools(const Array& array) {
  if (array.dtype != DType::kBool) return absl::OkStatus();
  for (int64_t i = 0; i < array.size(); ++i)
    if (array.data<uint8_t>()[i] > 1)
      return DataLoss("element %d of a bool tensor is %d", i,
                      array.data<uint8_t>()[i]);
  return absl::OkStatus();
}

// The array of a tensor whose elements are of `dtype`, or of unsigned integers
// of as many bits.
absl::StatusOr<Array> StoredArray(format::Tensor* tensor,
                                  const std::string& folder,
                                  std::optional<DType> dtype) {
  if (!dtype.has_value())
    return Unimplemented("its element type %s is not supported",
                         OnnxTypeName(tensor->data_type()));
  Shape shape(tensor->dims().begin(), tensor->dims().end());
  auto size = CheckedBytes(shape, SizeOf(*dtype));
  if (!size.ok()) return DataLoss("%s", size.status().message());
  const int64_t bytes = *size;
  if (tensor->data_location() == 1)
    return ReadExternal(*tensor, *dtype, std::move(shape), bytes, folder);
  if (!tensor->has_raw_data())
    return FromTypedField(*tensor, *dtype, std::move(shape), bytes);
  // The bytes stay where protobuf put them.
  auto raw = std::shared_ptr<std::string>(tensor->release_raw_data());
  if (static_cast<int64_t>(raw->size()) != bytes)
    return DataLoss("it has %d bytes; shape %s of %s needs %d", raw->size(),
                    ToString(shape), Name(*dtype), bytes);
  Array array;
  array.dtype = *dtype;
  array.shape = std::move(shape);
  array.bytes = std::shared_ptr<const std::byte>(
      raw, reinterpret_cast<const std::byte*>(raw->data()));
  PD_RETURN_IF_ERROR(CheckBools(array));
  return array;
}

absl::StatusOr<Array> ToArray(format::Tensor* tensor,
                              const std::string& folder) {
  switch (OnnxUnsignedBits(tensor->data_type())) {
    case 16: {
      PD_ASSIGN_OR_RETURN(const Array stored,
                          StoredArray(tensor, folder, DType::kInt16));
      return ExtendedTo<uint16_t, int32_t>(DType::kInt32, stored);
    }
    case 32: {
      PD_ASSIGN_OR_RETURN(const Array stored,
                          StoredArray(tensor, folder, DType::kInt32));
      return ExtendedTo<uint32_t, int64_t>(DType::kInt64, stored);
    }
    case 64:
      return StoredArray(tensor, folder, DType::kInt64);
    default:
      return StoredArray(tensor, folder, DTypeFromOnnx(tensor->data_type()));
  }
}

class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<OnnxFileGraph> Graph(format::Graph* in) {
    OnnxFileGraph graph;
    graph.name = in->name();
    if (in->sparse_initializer_size() > 0)
      return Unimplemented("sparse initializers are not supported");
    for (auto& tensor : *in->mutable_initializer()) {
      const std::string name = tensor.name();
      PD_ASSIGN_OR_RETURN(Array array,
                          Named(ToArray(&tensor, folder_), "tensor", name));
      if (const int32_t bits = OnnxUnsignedBits(tensor.data_type()))
        graph.unsigned_bits[name] = bits;
      if (!graph.initializers.emplace(name, std::move(array)).second)
        return DataLoss("two initializers have the name '%s'", name);
    }
    for (auto& node : *in->mutable_node()) {
      PD_ASSIGN_OR_RETURN(OnnxFileNode read, Node(&node));
      graph.nodes.push_back(std::move(read));
    }
    for (const auto& value : in->input()) graph.inputs.push_back(Value(value));
    for (const auto& value : in->output())
      graph.outputs.push_back(Value(value));
    return graph;
  }

  absl::StatusOr<OnnxFileFunction> Function(format::Function* in) {
    OnnxFileFunction function;
    function.name = in->name();
    function.domain = in->domain();
    function.inputs.assign(in->input().begin(), in->input().end());
    function.outputs.assign(in->output().begin(), in->output().end());
    for (const auto& set : in->opset_import())
      function.opsets[Domain(set.domain())] = set.version();
    for (auto& attr : *in->mutable_attribute_proto()) {
      PD_ASSIGN_OR_RETURN(function.defaults[attr.name()], Attr(&attr));
    }
    for (auto& node : *in->mutable_node()) {
      PD_ASSIGN_OR_RETURN(OnnxFileNode read, Node(&node));
      function.nodes.push_back(std::move(read));
    }
    return function;
  }

  static std::string Domain(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
  }

 private:
  template <typename T>
  static absl::StatusOr<T> Named(absl::StatusOr<T> result, const char* what,
                                 const std::string& name) {
    if (result.ok()) return result;
    return Annotate(result.status(), absl::StrCat(what, " '", name, "'"));
  }

  absl::StatusOr<OnnxFileNode> Node(format::Node* in) {
    OnnxFileNode node;
    node.name = in->name();
    node.op_type = in->op_type();
    node.domain = Domain(in->domain());
    node.inputs.assign(in->input().begin(), in->input().end());
    node.outputs.assign(in->output().begin(), in->output().end());
    for (auto& attr : *in->mutable_attribute()) {
      const std::string name = attr.name();
      PD_ASSIGN_OR_RETURN(node.attrs[name],
                          Named(Named(Attr(&attr), "attribute", name), "node",
                                node.name.empty() ? node.op_type : node.name));
    }
    return node;
  }

  // Files of the first versions leave the type out.
  static int TypeOf(const format::Attribute& attr) {
    if (attr.type() != 0) return attr.type();
    if (attr.has_f()) return 1;
    if (attr.has_i()) return 2;
    if (attr.has_s()) return 3;
    if (attr.has_t()) return 4;
    if (attr.has_g()) return 5;
    if (attr.floats_size() > 0) return 6;
    if (attr.ints_size() > 0) return 7;
    return attr.strings_size() > 0 ? 8 : 0;
  }

  absl::StatusOr<OnnxFileAttr> Attr(format::Attribute* in) {
    using Kind = OnnxFileAttr::Kind;
    OnnxFileAttr attr;
    attr.reference = in->ref_attr_name();
    const int type = TypeOf(*in);
    if (type < 1 || type > 8) return attr;
    attr.kind = static_cast<Kind>(type - 1);
    attr.f = in->f();
    attr.i = in->i();
    attr.s = in->s();
    attr.floats.assign(in->floats().begin(), in->floats().end());
    attr.ints.assign(in->ints().begin(), in->ints().end());
    attr.strings.assign(in->strings().begin(), in->strings().end());
    if (!attr.reference.empty()) return attr;
    if (attr.kind == Kind::kTensor) {
      PD_ASSIGN_OR_RETURN(attr.tensor, ToArray(in->mutable_t(), folder_));
      attr.unsigned_bits = OnnxUnsignedBits(in->t().data_type());
    }
    if (attr.kind == Kind::kGraph) {
      PD_ASSIGN_OR_RETURN(OnnxFileGraph graph, Graph(in->mutable_g()));
      attr.graph.push_back(std::move(graph));
    }
    return attr;
  }

  static OnnxFileValue Value(const format::ValueInfo& in) {
    OnnxFileValue value;
    value.name = in.name();
    value.is_tensor = in.type().has_tensor_type();
    const format::TensorType& type = in.type().tensor_type();
    value.element_type = type.elem_type();
    if (!type.has_shape()) return value;
    value.shape.emplace();
    for (const auto& dim : type.shape().dim())
      value.shape->push_back(
          dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    return value;
  }

  std::string folder_;
};

template <typename Message>
bool Parse(absl::string_view bytes, Message* message) {
  return bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::optional<DType> DTypeFromOnnx(int32_t element_type) {
  if (element_type < 0 ||
      element_type >= static_cast<int32_t>(std::size(kElementTypes)))
    return std::nullopt;
  return kElementTypes[element_type].dtype;
}

int32_t OnnxUnsignedBits(int64_t element_type) {
  if (element_type == 4) return 16;
  return element_type == 12 ? 32 : element_type == 13 ? 64 : 0;
}

std::optional<DType> HolderFromOnnx(int32_t element_type) {
  const int32_t bits = OnnxUnsignedBits(element_type);
  if (bits == 0) return DTypeFromOnnx(element_type);
  return bits == 16 ? DType::kInt32 : DType::kInt64;
}

std::string OnnxTypeName(int32_t element_type) {
  if (element_type < 0 ||
      element_type >= static_cast<int32_t>(std::size(kElementTypes)))
    return absl::StrCat("number ", element_type);
  return kElementTypes[element_type].name;
}

absl::StatusOr<OnnxFile> ParseOnnx(absl::string_view bytes,
                                   const std::string& folder) {
  format::Model model;
  if (!Parse(bytes, &model))
    return DataLoss("%d bytes are no ONNX model", bytes.size());
  if (!model.has_graph() || model.opset_import_size() == 0)
    return DataLoss("an ONNX model has a graph and an opset; this has %s",
                    model.has_graph() ? "no opset" : "no graph");
  OnnxFile file;
  file.ir_version = model.ir_version();
  file.producer = model.producer_name();
  file.producer_version = model.producer_version();
  for (const auto& set : model.opset_import())
    file.opsets[Reader::Domain(set.domain())] = set.version();
  for (const auto& entry : model.metadata_props())
    file.metadata[entry.key()] = entry.value();
  Reader reader(folder);
  PD_ASSIGN_OR_RETURN(file.graph, reader.Graph(model.mutable_graph()));
  for (auto& function : *model.mutable_functions()) {
    PD_ASSIGN_OR_RETURN(OnnxFileFunction read, reader.Function(&function));
    file.functions.push_back(std::move(read));
  }
  return file;
}

absl::StatusOr<std::pair<std::string, Array>> ParseOnnxTensor(
    absl::string_view bytes) {
  format::Tensor tensor;
  if (!Parse(bytes, &tensor))
    return DataLoss("%d bytes are no ONNX tensor", bytes.size());
  const std::string name = tensor.name();
  auto array = ToArray(&tensor, "");
  if (!array.ok())
    return Annotate(array.status(), absl::StrCat("tensor '", name, "'"));
  return std::make_pair(name, *std::move(array));
}

// ModelProto starts with ir_version = 1 (varint) and has a graph = 7.
bool IsOnnx(absl::string_view bytes) {
  ProtoField field;
  bool version = false, graph = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field)) return false;
    version |= field.number == 1 && field.wire_type == 0;
    graph |= field.number == 7 && field.wire_type == 2;
    if (field.number == 1 && field.wire_type != 0) return false;
  }
  return version && graph;
}

}  // namespace pd
