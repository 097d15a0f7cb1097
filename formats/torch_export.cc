// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_export.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/torch.h"
#include "formats/torch_window.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using nlohmann::json;
using ArgKind = TorchArgument::Kind;

// An entry of every archive; others come before it.
constexpr char kFormat[] = "/archive_format";
// The first entry of archives of PyTorch 2.2 to 2.5.
constexpr absl::string_view kOldProgram = "serialized_exported_program.json";
constexpr absl::string_view kFolders[] = {"/data/weights/", "/data/constants/",
                                          "/models/"};

// PyTorch's numbers of dtypes.
constexpr std::pair<int64_t, DType> kDTypes[] = {
    {1, DType::kUInt8},       {2, DType::kInt8},    {3, DType::kInt16},
    {4, DType::kInt32},       {5, DType::kInt64},   {6, DType::kFloat16},
    {7, DType::kFloat32},     {8, DType::kFloat64}, {10, DType::kComplex64},
    {11, DType::kComplex128}, {12, DType::kBool},   {13, DType::kBFloat16}};

// Members of a document that may be anything: null where there are none.
const json& At(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

std::string Text(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<int64_t> Integer(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

// Numbers that JSON lacks are text.
std::optional<double> Number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = Text(value);
  if (text == "NaN") return std::nan("");
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// {"as_int": 3} or {"as_expr": ...}, {"as_name": ...}: a symbol.
int64_t IntegerOrSymbol(const json& value) {
  return Integer(At(value, "as_int")).value_or(kTorchSymbol);
}

// {"as_tensor": {"name": ...}} or {"as_none": true}
std::string OptionalTensor(const json& value) {
  return Text(At(At(value, "as_tensor"), "name"));
}

TorchArgument ArgumentOf(const json& in) {
  TorchArgument out;
  // Old files have the forms that an argument has not as null.
  auto given = in.end();
  int forms = 0;
  for (auto it = in.begin(); in.is_object() && it != in.end(); ++it)
    if (!it->is_null()) {
      given = it;
      ++forms;
    }
  if (forms != 1) {
    out.kind = in.is_null() ? ArgKind::kNone : ArgKind::kOther;
    return out;
  }
  const std::string& form = given.key();
  const json& value = given.value();
  const auto one = [&](ArgKind kind, int64_t integer) {
    out.kind = kind;
    out.ints = {integer};
  };
  if (form == "as_none") return out;
  if (form == "as_tensor") {
    out.kind = ArgKind::kTensor;
    out.names = {Text(At(value, "name"))};
  } else if (form == "as_optional_tensor") {
    out.names = {OptionalTensor(value)};
    out.kind = out.names[0].empty() ? ArgKind::kNone : ArgKind::kTensor;
  } else if (form == "as_tensors" || form == "as_optional_tensors") {
    out.kind = ArgKind::kTensors;
    for (const json& item : value)
      out.names.push_back(form == "as_tensors" ? Text(At(item, "name"))
                                               : OptionalTensor(item));
  } else if (form == "as_int" || form == "as_bool" ||
             form == "as_scalar_type" || form == "as_memory_format" ||
             form == "as_layout") {
    if (const auto integer = Integer(value))
      one(ArgKind::kInt, *integer);
    else
      out.kind = ArgKind::kOther;
  } else if (form == "as_sym_int" || form == "as_sym_bool") {
    const char* plain = form == "as_sym_int" ? "as_int" : "as_bool";
    if (const auto integer = Integer(At(value, plain))) {
      one(ArgKind::kInt, *integer);
    } else {
      out.kind = ArgKind::kSymbol;
      out.names = {Text(At(value, "as_name"))};
    }
  } else if (form == "as_ints" || form == "as_bools" || form == "as_sym_ints") {
    out.kind = ArgKind::kInts;
    for (const json& item : value)
      out.ints.push_back(form == "as_sym_ints"
                             ? IntegerOrSymbol(item)
                             : Integer(item).value_or(kTorchSymbol));
  } else if (form == "as_float") {
    out.kind = ArgKind::kFloat;
    out.floats = {Number(value).value_or(std::nan(""))};
  } else if (form == "as_floats") {
    out.kind = ArgKind::kFloats;
    for (const json& item : value)
      out.floats.push_back(Number(item).value_or(std::nan("")));
  } else if (form == "as_string") {
    out.kind = ArgKind::kString;
    out.text = Text(value);
  } else {
    out.kind = ArgKind::kOther;
  }
  return out;
}

absl::StatusOr<Shape> SizesOf(const json& meta, const char* key) {
  Shape shape;
  if (!At(meta, key).is_array()) return DataLoss("a tensor has no %s", key);
  for (const json& item : At(meta, key)) {
    const int64_t extent = IntegerOrSymbol(item);
    if (extent < 0 && extent != kTorchSymbol)
      return DataLoss("a tensor's %s are below 0", key);
    shape.push_back(extent == kTorchSymbol ? -1 : extent);
  }
  return shape;
}

void TakeNodes(const json& nodes, TorchExport* out) {
  if (!nodes.is_array()) return;
  for (const json& in : nodes) {
    TorchNode node;
    node.target = Text(At(in, "target"));
    const json& inputs = At(in, "inputs");
    for (size_t i = 0; inputs.is_array() && i < inputs.size(); ++i)
      node.inputs.emplace_back(Text(At(inputs[i], "name")),
                               ArgumentOf(At(inputs[i], "arg")));
    const json& outputs = At(in, "outputs");
    for (size_t i = 0; outputs.is_array() && i < outputs.size(); ++i)
      node.outputs.push_back(ArgumentOf(outputs[i]));
    out->nodes.push_back(std::move(node));
  }
}

absl::Status TakeValues(const json& values, TorchExport* out) {
  if (!values.is_object()) return DataLoss("the graph has no tensor_values");
  for (const auto& [name, meta] : values.items()) {
    TorchValue value;
    value.scalar_type = Integer(At(meta, "dtype")).value_or(0);
    PD_ASSIGN_OR_RETURN(value.shape, SizesOf(meta, "sizes"));
    out->values[name] = std::move(value);
  }
  return absl::OkStatus();
}

// The inputs of the graph: the user's, or weights of three kinds.
absl::Status TakeSignature(const json& signature, TorchExport* out) {
  const json& inputs = At(signature, "input_specs");
  const json& outputs = At(signature, "output_specs");
  if (!inputs.is_array() || !outputs.is_array())
    return DataLoss("the graph has no signature");
  for (const json& spec : inputs) {
    if (const json& user = At(spec, "user_input"); !user.is_null()) {
      const TorchArgument argument = ArgumentOf(At(user, "arg"));
      if (argument.kind == ArgKind::kTensor)
        out->inputs.push_back(argument.names[0]);
      else if (argument.kind != ArgKind::kNone)
        return Unimplemented("an input that is no tensor");
      continue;
    }
    bool taken = !At(spec, "constant_input").is_null();
    for (const auto& [kind, field] :
         {std::pair{"parameter", "parameter_name"},
          {"buffer", "buffer_name"},
          {"tensor_constant", "tensor_constant_name"}}) {
      const json& weight = At(spec, kind);
      if (weight.is_null()) continue;
      out->parameters[Text(At(At(weight, "arg"), "name"))] =
          Text(At(weight, field));
      taken = true;
    }
    if (!taken)
      return Unimplemented("an input of another kind than tensors and weights");
  }
  for (const json& spec : outputs) {
    const json& user = At(spec, "user_output");
    if (user.is_null())
      return FailedPrecondition(
          "the network changes its buffers or inputs; expected one that was "
          "exported after eval()");
    const TorchArgument argument = ArgumentOf(At(user, "arg"));
    if (argument.kind == ArgKind::kTensor)
      out->outputs.push_back(argument.names[0]);
    else if (argument.kind != ArgKind::kNone)
      return Unimplemented("an output that is no tensor");
  }
  return absl::OkStatus();
}

absl::StatusOr<Array> WeightOf(const json& meta, const FileBytes& storage) {
  PD_ASSIGN_OR_RETURN(const DType dtype,
                      DTypeFromTorch(Integer(At(meta, "dtype")).value_or(0)));
  TorchWindow window;
  PD_ASSIGN_OR_RETURN(window.shape, SizesOf(meta, "sizes"));
  PD_ASSIGN_OR_RETURN(window.strides, SizesOf(meta, "strides"));
  window.offset = IntegerOrSymbol(At(meta, "storage_offset"));
  const size_t element = SizeOf(dtype);
  PD_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(window.shape, element));
  // The stride of a single element leads nowhere.
  for (size_t i = 0; i < window.strides.size(); ++i)
    if (i < window.shape.size() && window.shape[i] == 1) window.strides[i] = 0;
  const auto held = static_cast<int64_t>(storage.size / element);
  if (window.strides.size() != window.shape.size() || window.offset < 0 ||
      IsDynamic(window.strides) || !LiesWithin(window, held) ||
      static_cast<uint64_t>(bytes) > 2 * storage.size)
    return DataLoss(
        "shape %s, strides %s and offset %d reach beyond its %d elements",
        ToString(window.shape), ToString(window.strides), window.offset, held);
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, window.shape, &to));
  if (bytes > 0) Gather(window, storage.data.get(), element, to);
  return array;
}

class Archive {
 public:
  static absl::StatusOr<Archive> Open(const FileBytes& file) {
    PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
    std::string root;
    for (int64_t i = 0; i < zip.count() && root.empty(); ++i) {
      PD_ASSIGN_OR_RETURN(const std::string name, zip.Name(i));
      if (absl::EndsWith(name, kFormat))
        root = name.substr(0, name.size() - sizeof(kFormat) + 2);
    }
    return Archive(std::move(zip), std::move(root), file.size);
  }

  absl::StatusOr<FileBytes> Read(absl::string_view name) {
    return zip_.Read(absl::StrCat(root_, name));
  }

  absl::StatusOr<json> ReadJson(absl::string_view name) {
    PD_ASSIGN_OR_RETURN(const FileBytes bytes, Read(name));
    // A document takes ten times its text in memory.
    if (bytes.size / kMostUnpacked > file_size_)
      return DataLoss("'%s' unpacks to %d bytes, from a file of %d", name,
                      bytes.size, file_size_);
    const char* text = bytes.view().data();
    json document = json::parse(text, text + bytes.size, nullptr, false);
    if (document.is_discarded()) return DataLoss("'%s' is no JSON", name);
    return document;
  }

  // Weights or constants: a table of names, and a file for each storage.
  absl::Status TakeWeights(const char* folder, const char* table,
                           NamedArrays* out) {
    const std::string at = absl::StrCat("data/", folder, "/");
    const auto document = ReadJson(absl::StrCat(at, table));
    if (absl::IsNotFound(document.status())) return absl::OkStatus();
    PD_RETURN_IF_ERROR(document.status());
    const json& config = At(*document, "config");
    std::map<std::string, FileBytes> storages;
    if (!config.is_object()) return DataLoss("'%s' has no config", table);
    for (const auto& [name, entry] : config.items()) {
      const json& pickled = At(entry, "use_pickle");
      if (pickled.is_boolean() && pickled.get<bool>())
        return Unimplemented("weight '%s' is pickled", name);
      const std::string path = Text(At(entry, "path_name"));
      FileBytes& storage = storages[path];
      if (storage.data == nullptr) {
        PD_ASSIGN_OR_RETURN(storage, Read(absl::StrCat(at, path)));
      }
      auto array = WeightOf(At(entry, "tensor_meta"), storage);
      if (!array.ok())
        return Annotate(array.status(), absl::StrCat("weight '", name, "'"));
      (*out)[name] = *std::move(array);
    }
    return absl::OkStatus();
  }

  // The same as torch.save has it, of PyTorch 2.2 to 2.5: under one of two
  // names.
  absl::Status TakeSaved(const std::string& stem, NamedArrays* out) {
    auto bytes = Read(stem + ".pt");
    if (absl::IsNotFound(bytes.status())) bytes = Read(stem + ".json");
    PD_RETURN_IF_ERROR(bytes.status());
    if (bytes->size == 0) return absl::OkStatus();
    const auto saved = ParseTorch(*bytes);
    if (!saved.ok()) return Annotate(saved.status(), stem);
    const auto* dict = saved->As<PickleDict>();
    if (dict == nullptr)
      return DataLoss("'%s' has %s; expected a dict of tensors", stem,
                      TypeName(*saved));
    for (const auto& [key, value] : dict->items) {
      const auto* name = key.As<std::string>();
      const auto* array = value.As<Array>();
      if (name != nullptr && array != nullptr) (*out)[*name] = *array;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kMostUnpacked = 16;

  Archive(ZipArchive zip, std::string root, size_t file_size)
      : zip_(std::move(zip)), root_(std::move(root)), file_size_(file_size) {}

  ZipArchive zip_;
  std::string root_;  // "NAME/"
  size_t file_size_;
};

}  // namespace

bool IsTorchExport(absl::string_view bytes) {
  const absl::string_view name = FirstZipName(bytes);
  return absl::EndsWith(name, kFormat) || name == kOldProgram ||
         std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](absl::string_view folder) {
                       return absl::StrContains(name, folder);
                     });
}

absl::StatusOr<DType> DTypeFromTorch(int64_t scalar_type) {
  // UNKNOWN is 0, so that numbers are one more than those of c10::ScalarType.
  for (const auto& [number, dtype] : kDTypes)
    if (number == scalar_type) return dtype;
  return Unimplemented("PyTorch's dtype %d is not supported", scalar_type);
}

absl::StatusOr<TorchExport> ParseTorchExport(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(Archive archive, Archive::Open(file));
  auto model = archive.ReadJson("models/model.json");
  const bool old = absl::IsNotFound(model.status());
  if (old) model = archive.ReadJson(kOldProgram);
  if (absl::IsNotFound(model.status()))
    return DataLoss(
        "it has neither 'models/model.json' nor '%s'; expected a file as "
        "torch.export.save of PyTorch 2.15 or 2.2 to 2.5 writes it",
        kOldProgram);
  PD_RETURN_IF_ERROR(model.status());
  const json& module = At(*model, "graph_module");
  const json& graph = At(module, "graph");
  TorchExport out;
  out.version = Text(At(*model, "torch_version"));
  PD_RETURN_IF_ERROR(TakeSignature(At(module, "signature"), &out));
  PD_RETURN_IF_ERROR(TakeValues(At(graph, "tensor_values"), &out));
  TakeNodes(At(graph, "nodes"), &out);
  if (old) {
    PD_RETURN_IF_ERROR(
        archive.TakeSaved("serialized_state_dict", &out.weights));
    PD_RETURN_IF_ERROR(archive.TakeSaved("serialized_constants", &out.weights));
    return out;
  }
  PD_RETURN_IF_ERROR(archive.TakeWeights("weights", "model_weights_config.json",
                                         &out.weights));
  PD_RETURN_IF_ERROR(archive.TakeWeights(
      "constants", "model_constants_config.json", &out.weights));
  return out;
}

}  // namespace pd
