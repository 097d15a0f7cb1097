// SPDX-License-Identifier: Apache-2.0
#include "formats/keras_file.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "formats/hdf5.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using KerasJson = nlohmann::json;
using ValueKind = KerasValue::Kind;

constexpr size_t kMostUnpacked = 16;  // of JSON, which takes ten times as much
constexpr int kMostNesting = 200;     // of values in values
constexpr int kMostNetworks = 16;     // of networks in networks
constexpr int64_t kMostParts = 1000;  // of a long list of names

bool IsTensorRef(const KerasJson& in) {
  return in.is_array() && in.size() >= 3 && in[0].is_string() &&
         in[1].is_number_integer() && in[2].is_number_integer();
}

KerasRef RefOf(const KerasJson& in) {
  return {in[0].get<std::string>(), in[1].get<int64_t>(), in[2].get<int64_t>()};
}

// `tensors`: lists of a name and two numbers are tensors, as in Keras 2.
absl::StatusOr<KerasValue> ValueOf(const KerasJson& in, bool tensors,
                                   int depth = 0) {
  KerasValue out;
  if (depth > kMostNesting)
    return DataLoss("more than %d values in each other", kMostNesting);
  if (in.is_boolean()) {
    out.kind = ValueKind::kBool;
    out.i = in.get<bool>() ? 1 : 0;
  } else if (in.is_number_unsigned() &&
             in.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    out.kind = ValueKind::kFloat;
    out.f = in.get<double>();
  } else if (in.is_number_integer()) {
    out.kind = ValueKind::kInt;
    out.i = in.get<int64_t>();
    out.f = static_cast<double>(out.i);
  } else if (in.is_number()) {
    out.kind = ValueKind::kFloat;
    out.f = in.get<double>();
  } else if (in.is_string()) {
    out.kind = ValueKind::kText;
    out.text = in.get<std::string>();
  } else if (tensors && IsTensorRef(in)) {
    out.kind = ValueKind::kTensor;
    out.ref = RefOf(in);
  } else if (in.is_array()) {
    out.kind = ValueKind::kList;
    for (const KerasJson& item : in) {
      PD_ASSIGN_OR_RETURN(KerasValue value, ValueOf(item, tensors, depth + 1));
      out.list.push_back(std::move(value));
    }
  } else if (in.is_object()) {
    const auto name = in.find("class_name");
    if (name != in.end() && *name == "__keras_tensor__") {
      const auto config = in.find("config");
      if (config == in.end() || !config->is_object() ||
          !IsTensorRef(config->value("keras_history", KerasJson())))
        return DataLoss("a tensor without its layer");
      out.kind = ValueKind::kTensor;
      out.ref = RefOf((*config)["keras_history"]);
      return out;
    }
    out.kind = ValueKind::kDict;
    for (const auto& [key, value] : in.items()) {
      PD_ASSIGN_OR_RETURN(out.dict[key], ValueOf(value, tensors, depth + 1));
    }
  }
  return out;
}

// Members of a document that may be anything: null where there are none.
const KerasJson& Member(const KerasJson& object, const char* key) {
  static const KerasJson none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

std::string TextOf(const KerasJson& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

// Keras 3: {"args": [...], "kwargs": {...}}. Keras 2: a list of tensors, each
// with the arguments of the call behind it.
absl::StatusOr<KerasNode> NodeOf(const KerasJson& in) {
  KerasNode node;
  if (in.is_object()) {
    PD_ASSIGN_OR_RETURN(KerasValue args, ValueOf(Member(in, "args"), false));
    node.args = std::move(args.list);
    PD_ASSIGN_OR_RETURN(KerasValue named, ValueOf(Member(in, "kwargs"), false));
    node.kwargs = std::move(named.dict);
  } else {
    const bool alone = IsTensorRef(in);
    if (!in.is_array()) return DataLoss("a call that is no list");
    for (const KerasJson& item : alone ? KerasJson::array({in}) : in) {
      PD_ASSIGN_OR_RETURN(KerasValue value, ValueOf(item, true));
      if (value.kind == ValueKind::kTensor && item.size() > 3) {
        PD_ASSIGN_OR_RETURN(KerasValue named, ValueOf(item[3], true));
        node.kwargs.merge(named.dict);
      }
      node.args.push_back(std::move(value));
    }
  }
  for (auto it = node.kwargs.begin(); it != node.kwargs.end();)
    it = it->second.kind == ValueKind::kNone ? node.kwargs.erase(it)
                                             : std::next(it);
  return node;
}

// One tensor, or a list of them in any depth; Keras 3 knows dicts too.
void TakeRefs(const KerasValue& in, std::vector<KerasRef>* out) {
  if (in.kind == ValueKind::kTensor) out->push_back(in.ref);
  for (const KerasValue& item : in.list) TakeRefs(item, out);
  for (const auto& [name, item] : in.dict) TakeRefs(item, out);
}

absl::Status TakeLayers(const KerasJson& layers, int depth, KerasLayer* out);

absl::StatusOr<KerasLayer> LayerOf(const KerasJson& in, int depth) {
  KerasLayer layer;
  layer.class_name = TextOf(Member(in, "class_name"));
  const KerasJson& config = Member(in, "config");
  layer.name = TextOf(Member(in, "name"));
  if (layer.name.empty()) layer.name = TextOf(Member(config, "name"));
  if (layer.class_name.empty())
    return DataLoss("layer '%s' has no class", layer.name);
  const KerasJson& calls = Member(in, "inbound_nodes");
  for (size_t i = 0; calls.is_array() && i < calls.size(); ++i) {
    auto node = NodeOf(calls[i]);
    if (!node.ok())
      return Annotate(node.status(), absl::StrCat("layer '", layer.name, "'"));
    layer.nodes.push_back(*std::move(node));
  }
  // A Sequential of early versions is a list.
  const KerasJson& layers =
      config.is_array() ? config : Member(config, "layers");
  if (layers.is_array() && layer.class_name != "StackedRNNCells") {
    PD_RETURN_IF_ERROR(TakeLayers(layers, depth, &layer));
    for (const bool input : {true, false}) {
      const char* key = input ? "input_layers" : "output_layers";
      PD_ASSIGN_OR_RETURN(const KerasValue ends,
                          ValueOf(Member(config, key), true));
      TakeRefs(ends, input ? &layer.inputs : &layer.outputs);
    }
    return layer;
  }
  PD_ASSIGN_OR_RETURN(layer.config, ValueOf(config, false));
  return layer;
}

// Keras 2 counts the call that made a network of its own, which is not among
// those of the file.
void CountFromZero(KerasLayer* network) {
  std::map<std::string, int64_t> most;
  const auto see = [&](const KerasRef& ref) {
    int64_t& node = most[ref.layer];
    node = std::max(node, ref.node);
  };
  std::vector<KerasRef*> refs;
  const auto take = [&](const auto& self, KerasValue* value) -> void {
    if (value->kind == ValueKind::kTensor) refs.push_back(&value->ref);
    for (KerasValue& item : value->list) self(self, &item);
    for (auto& [name, item] : value->dict) self(self, &item);
  };
  for (KerasLayer& layer : network->layers)
    for (KerasNode& node : layer.nodes) {
      for (KerasValue& value : node.args) take(take, &value);
      for (auto& [name, value] : node.kwargs) take(take, &value);
    }
  for (KerasRef& ref : network->outputs) refs.push_back(&ref);
  for (const KerasRef* ref : refs) see(*ref);
  for (const KerasLayer& layer : network->layers) {
    const auto calls = static_cast<int64_t>(layer.nodes.size());
    if (layer.layers.empty() || calls == 0 || most[layer.name] != calls)
      continue;
    for (KerasRef* ref : refs)
      if (ref->layer == layer.name) --ref->node;
  }
}

absl::Status TakeLayers(const KerasJson& layers, int depth, KerasLayer* out) {
  if (depth > kMostNetworks)
    return DataLoss("more than %d networks in each other", kMostNetworks);
  for (const KerasJson& in : layers) {
    PD_ASSIGN_OR_RETURN(KerasLayer layer, LayerOf(in, depth + 1));
    out->layers.push_back(std::move(layer));
  }
  if (out->layers.empty())
    return DataLoss("network '%s' has no layers", out->name);
  return absl::OkStatus();
}

absl::StatusOr<KerasLayer> ModelOf(absl::string_view text) {
  const char* begin = text.data();
  const KerasJson document =
      KerasJson::parse(begin, begin + text.size(), nullptr, false);
  if (document.is_discarded()) return DataLoss("the network is no JSON");
  PD_ASSIGN_OR_RETURN(KerasLayer model, LayerOf(document, 0));
  if (model.layers.empty())
    return Unimplemented(
        "the network is of class '%s', which the file does not describe; "
        "expected Sequential or Functional",
        model.class_name);
  return model;
}

void CountNodes(KerasLayer* layer) {
  for (KerasLayer& inner : layer->layers) CountNodes(&inner);
  CountFromZero(layer);
}

void TakeArrays(const Hdf5Object& group, const std::string& path,
                NamedArrays* out) {
  for (const auto& [name, member] : group.members) {
    const std::string below =
        path.empty() ? name : absl::StrCat(path, "/", name);
    if (member.array.has_value()) out->emplace(below, *member.array);
    TakeArrays(member, below, out);
  }
}

// A list of strings that may be in parts: NAME, or NAME0, NAME1, ...
std::vector<std::string> NamesIn(const Hdf5Object& group,
                                 const std::string& name) {
  const auto whole = group.texts.find(name);
  if (whole != group.texts.end()) return whole->second;
  std::vector<std::string> names;
  for (int64_t i = 0; i < kMostParts; ++i) {
    const auto part = group.texts.find(absl::StrCat(name, i));
    if (part == group.texts.end()) break;
    names.insert(names.end(), part->second.begin(), part->second.end());
  }
  return names;
}

// The weights of a layer of the network are in a group of its name; those of
// the layers of a network in it are there too, and are told by their paths.
absl::Status TakeLegacyWeights(const Hdf5Object& group,
                               const std::vector<std::string>& names,
                               bool inside, KerasLayer* layer) {
  if (!layer->layers.empty()) {
    for (KerasLayer& inner : layer->layers)
      PD_RETURN_IF_ERROR(TakeLegacyWeights(group, names, true, &inner));
    return absl::OkStatus();
  }
  for (const std::string& name : names) {
    const std::vector<std::string> parts = absl::StrSplit(name, '/');
    if (inside && std::find(parts.begin(), parts.end() - 1, layer->name) ==
                      parts.end() - 1)
      continue;
    const Hdf5Object* weight = group.Find(name);
    if (weight == nullptr || !weight->array.has_value())
      return DataLoss("the file has no weight '%s'", name);
    layer->weights.push_back(*weight->array);
  }
  return absl::OkStatus();
}

// "Conv2DTranspose" is conv2d_transpose, as Keras names groups.
std::string SnakeCase(absl::string_view name) {
  std::string out;
  const auto is = [&](size_t i, int (*test)(int)) {
    return i < name.size() && test(static_cast<unsigned char>(name[i])) != 0;
  };
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && is(i, isupper) && (is(i - 1, islower) || is(i + 1, islower)))
      out += '_';
    if (is(i, isalnum) || name[i] == '_')
      out += static_cast<char>(tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

// A layer's own weights, then those of the layers that it wraps.
void TakeVars(const Hdf5Object& group, std::vector<Array>* out) {
  if (const Hdf5Object* vars = group.Find("vars")) {
    for (size_t i = 0; i < vars->members.size(); ++i) {
      const Hdf5Object* weight = vars->Find(absl::StrCat(i));
      if (weight != nullptr && weight->array.has_value())
        out->push_back(*weight->array);
    }
  }
  for (const char* name :
       {"layer", "forward_layer", "backward_layer", "cell", "query_dense",
        "key_dense", "value_dense", "output_dense"})
    for (const char* prefix : {"", "_"})
      if (const Hdf5Object* inner = group.Find(absl::StrCat(prefix, name)))
        TakeVars(*inner, out);
}

void TakeWeights(const Hdf5Object& group, KerasLayer* layer) {
  if (layer->layers.empty()) return TakeVars(group, &layer->weights);
  const Hdf5Object* layers = group.Find("layers");
  if (layers == nullptr) layers = group.Find("_layer_checkpoint_dependencies");
  if (layers == nullptr) return;
  std::map<std::string, int> used;
  for (KerasLayer& inner : layer->layers) {
    std::string name = SnakeCase(inner.class_name);
    const int count = used[name]++;
    if (count > 0) absl::StrAppend(&name, "_", count);
    if (const Hdf5Object* weights = layers->Find(name))
      TakeWeights(*weights, &inner);
  }
}

}  // namespace

const KerasValue& KerasValue::operator[](const std::string& key) const {
  static const KerasValue none;
  const auto member = dict.find(key);
  return member == dict.end() ? none : member->second;
}

bool IsKeras(absl::string_view bytes) {
  const absl::string_view name = FirstZipName(bytes);
  return name == "metadata.json" || name == "config.json" ||
         name == "model.weights.h5";
}

absl::StatusOr<KerasFile> ParseKeras(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
  PD_ASSIGN_OR_RETURN(const FileBytes config, zip.Read("config.json"));
  const auto weights = zip.Read("model.weights.h5");
  if (absl::IsNotFound(weights.status()))
    return Unimplemented(
        "the weights are in several files or elsewhere; "
        "expected 'model.weights.h5'");
  PD_RETURN_IF_ERROR(weights.status());
  if (config.size / kMostUnpacked > file.size)
    return DataLoss("'config.json' unpacks to %d bytes, from a file of %d",
                    config.size, file.size);
  KerasFile out;
  PD_ASSIGN_OR_RETURN(out.model, ModelOf(config.view()));
  CountNodes(&*out.model);
  const auto metadata = zip.Read("metadata.json");
  if (metadata.ok()) {
    const char* text = metadata->view().data();
    const KerasJson document =
        KerasJson::parse(text, text + metadata->size, nullptr, false);
    out.version = TextOf(Member(document, "keras_version"));
  }
  PD_ASSIGN_OR_RETURN(const Hdf5Object root, ParseHdf5(*weights));
  TakeWeights(root, &*out.model);
  TakeArrays(root, "", &out.arrays);
  return out;
}

absl::StatusOr<KerasFile> ParseKerasHdf5(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(const Hdf5Object root, ParseHdf5(file));
  KerasFile out;
  TakeArrays(root, "", &out.arrays);
  if (const std::string* version = root.Text("keras_version"))
    out.version = *version;
  const std::string* config = root.Text("model_config");
  if (config == nullptr) return out;
  PD_ASSIGN_OR_RETURN(out.model, ModelOf(*config));
  CountNodes(&*out.model);
  const Hdf5Object* weights = root.Find("model_weights");
  if (weights == nullptr) return DataLoss("the file has no 'model_weights'");
  for (KerasLayer& layer : out.model->layers) {
    const Hdf5Object* group = weights->Find(layer.name);
    if (group == nullptr) continue;
    PD_RETURN_IF_ERROR(TakeLegacyWeights(
        *group, NamesIn(*group, "weight_names"), false, &layer));
  }
  return out;
}

}  // namespace pd
