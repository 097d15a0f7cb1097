// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "formats/proto_fields.h"
#include "formats/tensorflow.pb.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace format = tensorflow_format;

// A constant that repeats its last number takes at most so many bytes.
constexpr int64_t kMostRepeated = int64_t{1} << 26;
// References to tensors have the number of the dtype and 100.
constexpr int64_t kReference = 100;

struct TfType {
  const char* name;
  std::optional<DType> dtype;
};
constexpr TfType kTfTypes[] = {
    {"DT_INVALID", std::nullopt},      {"DT_FLOAT", DType::kFloat32},
    {"DT_DOUBLE", DType::kFloat64},    {"DT_INT32", DType::kInt32},
    {"DT_UINT8", DType::kUInt8},       {"DT_INT16", DType::kInt16},
    {"DT_INT8", DType::kInt8},         {"DT_STRING", std::nullopt},
    {"DT_COMPLEX64", std::nullopt},    {"DT_INT64", DType::kInt64},
    {"DT_BOOL", DType::kBool},         {"DT_QINT8", std::nullopt},
    {"DT_QUINT8", std::nullopt},       {"DT_QINT32", std::nullopt},
    {"DT_BFLOAT16", DType::kBFloat16}, {"DT_QINT16", std::nullopt},
    {"DT_QUINT16", std::nullopt},      {"DT_UINT16", std::nullopt},
    {"DT_COMPLEX128", std::nullopt},   {"DT_HALF", DType::kFloat16},
    {"DT_RESOURCE", std::nullopt},     {"DT_VARIANT", std::nullopt},
    {"DT_UINT32", std::nullopt},       {"DT_UINT64", std::nullopt},
};

std::optional<Shape> DeclaredShape(const format::TensorShape& in) {
  if (in.unknown_rank()) return std::nullopt;
  Shape shape;
  for (const auto& dim : in.dim())
    shape.push_back(std::max<int64_t>(-1, dim.size()));
  return shape;
}

// As many numbers as the shape has elements; the last one stands for those
// that the file leaves out, and none at all for zeros.
template <typename Stored, typename Field>
void TakeNumbers(const Field& field, int64_t count, std::byte* out) {
  Stored last = Stored();
  for (int64_t i = 0; i < count; ++i) {
    if (i < field.size())
      last = static_cast<Stored>(field.Get(static_cast<int>(i)));
    std::memcpy(out, &last, sizeof(last));
    out += sizeof(last);
  }
}

absl::Status TakeTyped(const format::Tensor& in, DType dtype, int64_t count,
                       std::byte* out) {
  switch (dtype) {
    case DType::kFloat32:
      TakeNumbers<float>(in.float_val(), count, out);
      break;
    case DType::kFloat64:
      TakeNumbers<double>(in.double_val(), count, out);
      break;
    case DType::kInt64:
      TakeNumbers<int64_t>(in.int64_val(), count, out);
      break;
    case DType::kInt32:
      TakeNumbers<int32_t>(in.int_val(), count, out);
      break;
    case DType::kBool:
      TakeNumbers<uint8_t>(in.bool_val(), count, out);
      break;
    case DType::kFloat16:
    case DType::kBFloat16:
      TakeNumbers<uint16_t>(in.half_val(), count, out);
      break;
    case DType::kInt16:
      TakeNumbers<int16_t>(in.int_val(), count, out);
      break;
    default:
      TakeNumbers<uint8_t>(in.int_val(), count, out);
  }
  return absl::OkStatus();
}

int TypedNumbers(const format::Tensor& in) {
  return std::max({in.float_val_size(), in.double_val_size(),
                   in.int64_val_size(), in.int_val_size(), in.bool_val_size(),
                   in.half_val_size()});
}

absl::StatusOr<Array> ConstantOf(const format::Tensor& in, DType dtype) {
  const std::optional<Shape> declared = DeclaredShape(in.tensor_shape());
  if (!declared.has_value() || IsDynamic(*declared))
    return DataLoss("a constant has no shape");
  const auto bytes = CheckedBytes(*declared, SizeOf(dtype));
  if (!bytes.ok()) return DataLoss("%s", bytes.status().message());
  const int64_t count = NumElements(*declared);
  const std::string& content = in.tensor_content();
  if (!content.empty() && static_cast<int64_t>(content.size()) != *bytes)
    return DataLoss("a constant of %d bytes; its shape is %s of %s",
                    content.size(), ToString(*declared), Name(dtype));
  const int typed = TypedNumbers(in);
  if (content.empty() && typed > count)
    return DataLoss("a constant of %d numbers; its shape is %s", typed,
                    ToString(*declared));
  if (content.empty() && typed<count&& * bytes> kMostRepeated)
    return Unimplemented("a constant of shape %s that repeats a number",
                         ToString(*declared));
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, *declared, &out));
  if (content.empty()) {
    PD_RETURN_IF_ERROR(TakeTyped(in, dtype, count, out));
  } else {
    std::memcpy(out, content.data(), content.size());
  }
  if (dtype == DType::kBool)
    for (int64_t i = 0; i < count; ++i)
      if (static_cast<uint8_t>(out[i]) > 1)
        return DataLoss("element %d of a bool constant is %d", i,
                        static_cast<int>(out[i]));
  return array;
}

absl::StatusOr<TfAttr> TensorAttr(const format::Tensor& in) {
  TfAttr attr;
  const auto dtype = DTypeFromTensorflow(in.dtype());
  if (dtype.has_value()) {
    attr.kind = TfAttr::Kind::kTensor;
    PD_ASSIGN_OR_RETURN(attr.tensor, ConstantOf(in, *dtype));
  } else if (in.string_val_size() > 0) {
    attr.kind = TfAttr::Kind::kStrings;
    attr.strings.assign(in.string_val().begin(), in.string_val().end());
  }
  attr.i = in.dtype();
  return attr;
}

TfAttr ListAttr(const format::ListValue& in) {
  TfAttr attr;
  attr.kind = TfAttr::Kind::kInts;
  if (in.s_size() > 0) {
    attr.kind = TfAttr::Kind::kStrings;
    attr.strings.assign(in.s().begin(), in.s().end());
  } else if (in.func_size() > 0) {
    attr.kind = TfAttr::Kind::kStrings;
    for (const auto& function : in.func())
      attr.strings.push_back(function.name());
  } else if (in.f_size() > 0) {
    attr.kind = TfAttr::Kind::kFloats;
    attr.floats.assign(in.f().begin(), in.f().end());
  } else if (in.b_size() > 0) {
    attr.ints.assign(in.b().begin(), in.b().end());
  } else if (in.type_size() > 0) {
    attr.ints.assign(in.type().begin(), in.type().end());
  } else {
    attr.ints.assign(in.i().begin(), in.i().end());
  }
  return attr;
}

absl::StatusOr<TfAttr> AttrOf(const format::AttrValue& in) {
  using Kind = TfAttr::Kind;
  TfAttr attr;
  if (in.has_tensor()) return TensorAttr(in.tensor());
  if (in.has_list()) return ListAttr(in.list());
  if (in.has_s() || in.has_func()) {
    attr.kind = Kind::kString;
    attr.text = in.has_s() ? in.s() : in.func().name();
  } else if (in.has_f()) {
    attr.kind = Kind::kFloat;
    attr.f = static_cast<double>(in.f());
  } else if (in.has_shape()) {
    attr.kind = Kind::kShape;
    attr.shape = DeclaredShape(in.shape());
  } else if (in.has_placeholder()) {
    attr.kind = Kind::kPlaceholder;
    attr.text = in.placeholder();
  } else if (in.has_i() || in.has_b() || in.has_type()) {
    attr.kind = Kind::kInt;
    attr.i = in.has_i() ? in.i() : in.has_b() ? in.b() : in.type();
  }
  return attr;
}

absl::StatusOr<TfNode> NodeOf(const format::Node& in) {
  TfNode node;
  node.name = in.name();
  node.op = in.op();
  node.inputs.assign(in.input().begin(), in.input().end());
  for (const auto& entry : in.attr()) {
    auto attr = AttrOf(entry.value());
    if (!attr.ok())
      return Annotate(attr.status(),
                      absl::StrCat("node '", node.name, "' (", node.op,
                                   "): attribute '", entry.key(), "'"));
    node.attrs[entry.key()] = *std::move(attr);
  }
  return node;
}

template <typename Nodes>
absl::Status TakeNodes(const Nodes& from, std::vector<TfNode>* to) {
  to->reserve(static_cast<size_t>(from.size()));
  for (const format::Node& in : from) {
    PD_ASSIGN_OR_RETURN(TfNode node, NodeOf(in));
    to->push_back(std::move(node));
  }
  return absl::OkStatus();
}

absl::StatusOr<TfFunction> FunctionOf(const format::FunctionDef& in) {
  TfFunction function;
  for (const auto& argument : in.signature().input_arg())
    function.inputs.push_back(argument.name());
  for (const auto& argument : in.signature().output_arg()) {
    const auto ret = std::find_if(
        in.ret().begin(), in.ret().end(),
        [&](const auto& entry) { return entry.key() == argument.name(); });
    if (ret == in.ret().end())
      return DataLoss("nothing gives its output '%s'", argument.name());
    function.outputs.push_back(ret->value());
  }
  PD_RETURN_IF_ERROR(TakeNodes(in.node_def(), &function.nodes));
  return function;
}

absl::StatusOr<TfGraph> GraphOf(const format::Graph& in) {
  TfGraph graph;
  graph.producer = in.versions().producer();
  PD_RETURN_IF_ERROR(TakeNodes(in.node(), &graph.nodes));
  for (const auto& function : in.library().function()) {
    const std::string& name = function.signature().name();
    auto parsed = FunctionOf(function);
    if (!parsed.ok())
      return Annotate(parsed.status(), absl::StrCat("function '", name, "'"));
    graph.functions[name] = *std::move(parsed);
  }
  return graph;
}

template <typename Entries>
std::map<std::string, TfEnd> EndsOf(const Entries& entries) {
  std::map<std::string, TfEnd> ends;
  for (const format::TensorInfoEntry& entry : entries) {
    TfEnd& end = ends[entry.key()];
    end.value = entry.value().name();
    end.dtype = entry.value().dtype();
    if (entry.value().has_tensor_shape())
      end.shape = DeclaredShape(entry.value().tensor_shape());
  }
  return ends;
}

absl::StatusOr<TfSavedModel> SavedModelOf(const format::MetaGraph& in) {
  TfSavedModel model;
  model.version = in.meta_info_def().tensorflow_version();
  model.restore = in.saver_def().restore_op_name();
  for (const auto& entry : in.signature_def()) {
    TfSignature& signature = model.signatures[entry.key()];
    signature.inputs = EndsOf(entry.value().inputs());
    signature.outputs = EndsOf(entry.value().outputs());
  }
  PD_ASSIGN_OR_RETURN(model.graph, GraphOf(in.graph_def()));
  return model;
}

template <typename Message>
bool Parses(absl::string_view bytes, Message* message) {
  return bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// A node begins with its name and its operator's.
bool BeginsAsNode(absl::string_view bytes) {
  ProtoField name, op;
  return TakeField(&bytes, &name) && name.number == 1 && name.wire_type == 2 &&
         TakeField(&bytes, &op) && op.number == 2 && op.wire_type == 2 &&
         !name.payload.empty() && !op.payload.empty() &&
         (op.payload[0] == '_' ||
          absl::ascii_isalpha(static_cast<unsigned char>(op.payload[0])));
}

}  // namespace

bool IsTensorflowGraph(absl::string_view bytes) {
  ProtoField field;
  bool nodes = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field) || field.number > 5) return false;
    if ((field.number == 3) != (field.wire_type == 0)) return false;
    if (field.number == 3) continue;
    if (field.wire_type != 2) return false;
    if (field.number != 1) continue;
    if (!BeginsAsNode(field.payload)) return false;
    nodes = true;
  }
  return nodes;
}

bool IsTensorflowSavedModel(absl::string_view bytes) {
  ProtoField field;
  bool version = false, graph = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field) || field.number > 2) return false;
    if ((field.number == 1) != (field.wire_type == 0)) return false;
    if (field.number == 1) {
      version = true;
      continue;
    }
    if (field.wire_type != 2) return false;
    absl::string_view inner = field.payload;
    while (!inner.empty()) {
      ProtoField part;
      if (!TakeField(&inner, &part) || part.number > 7 || part.wire_type != 2)
        return false;
      graph = graph || part.number == 2;
    }
  }
  return version && graph;
}

std::optional<DType> DTypeFromTensorflow(int64_t number) {
  if (number > kReference) number -= kReference;
  if (number < 0 || number >= static_cast<int64_t>(std::size(kTfTypes)))
    return std::nullopt;
  return kTfTypes[number].dtype;
}

std::string TensorflowTypeName(int64_t number) {
  const int64_t plain = number > kReference ? number - kReference : number;
  if (plain < 0 || plain >= static_cast<int64_t>(std::size(kTfTypes)))
    return absl::StrCat("dtype ", number);
  return kTfTypes[plain].name;
}

absl::StatusOr<TfGraph> ParseTensorflowGraph(absl::string_view bytes) {
  format::Graph graph;
  if (!Parses(bytes, &graph) || graph.node_size() == 0)
    return DataLoss("%d bytes are no graph of TensorFlow", bytes.size());
  return GraphOf(graph);
}

absl::StatusOr<TfSavedModel> ParseTensorflowSavedModel(
    absl::string_view bytes) {
  format::SavedModel model;
  if (!Parses(bytes, &model))
    return DataLoss("%d bytes are no SavedModel", bytes.size());
  const format::MetaGraph* chosen = nullptr;
  for (const auto& graph : model.meta_graphs()) {
    const auto& tags = graph.meta_info_def().tags();
    if (std::find(tags.begin(), tags.end(), "serve") != tags.end())
      chosen = &graph;
  }
  if (chosen == nullptr && model.meta_graphs_size() == 1)
    chosen = &model.meta_graphs(0);
  if (chosen == nullptr)
    return DataLoss("none of its %d graphs is for serving",
                    model.meta_graphs_size());
  return SavedModelOf(*chosen);
}

}  // namespace pd
