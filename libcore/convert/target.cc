// SPDX-License-Identifier: Apache-2.0
// Names of the forms that are written, and the form that a name asks for.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/format_table.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write.h"
#include "libcore/model/tree.h"

namespace pd {
namespace {

struct TargetName {
  const char* name;
  Target target;
};

constexpr TargetName kTargets[] = {
    {"pdparams", Target::kPickle},
    {"pdopt", Target::kPickle},
    {"pickle", Target::kPickle},
    {"paddle", Target::kPaddle},
    {"paddle-static", Target::kPaddleStatic},
    {"paddle-legacy", Target::kLegacy},
    {"paddle-legacy-joint", Target::kLegacyJoint},
    {"pdmodel", Target::kProgram},
    {"pdiparams", Target::kJoint},
    {"vars", Target::kSeparate},
    {"tensor", Target::kTensor},
    {"selected-rows", Target::kSelectedRows},
    {"info", Target::kInfo},
    {"npy", Target::kNpy},
    {"npz", Target::kNpz},
    {"safetensors", Target::kSafetensors},
    {"text", Target::kText},
};

// By the formats' own endings (formats/format_table.h).
constexpr std::pair<FileKind, Target> kOfKinds[] = {
    {FileKind::kPickle, Target::kPickle},
    {FileKind::kTensorStream, Target::kJoint},
    {FileKind::kNpy, Target::kNpy},
    {FileKind::kNpz, Target::kNpz},
    {FileKind::kSafetensors, Target::kSafetensors},
};

// Endings that say more than the format, or that its bytes go without.
constexpr TargetName kOtherEndings[] = {
    {".pdiparams.info", Target::kInfo}, {".pd", Target::kPickle},
    {".pkl", Target::kPickle},          {".pickle", Target::kPickle},
    {".pdckpt", Target::kPickle},       {".txt", Target::kText},
};

std::optional<Target> TargetOfEnding(const std::string& path) {
  for (const TargetName& other : kOtherEndings)
    if (absl::EndsWith(path, other.name)) return other.target;
  for (const FileFormat& format : FileFormats())
    for (const absl::string_view ending : format.endings)
      for (const auto& [kind, target] : kOfKinds)
        if (kind == format.kind && absl::EndsWith(path, ending)) return target;
  return std::nullopt;
}

bool HasArrays(const Content& content) {
  return content.rows.has_value() || content.object.As<PickleNone>() == nullptr;
}

// The form in which the program came.
Target ModelTarget(const Content& content) {
  if (!HasArrays(content)) return Target::kProgram;
  return content.state_files ? Target::kPaddleStatic : Target::kPaddle;
}

using Names = std::map<std::string, std::string>;

// The table of a state dict: structured name -> parameter name.
absl::Status AddTable(const PickleDict& dict, Names* names) {
  const PickleValue* table = dict.Find(kStructuredNamesKey);
  const auto* entries = table != nullptr ? table->As<PickleDict>() : nullptr;
  if (table != nullptr && entries == nullptr)
    return InvalidArgument("'%s' is of type %s; expected dict",
                           kStructuredNamesKey, TypeName(*table));
  if (entries == nullptr) return absl::OkStatus();
  for (const auto& [key, value] : entries->items) {
    const auto* structured = key.As<std::string>();
    const auto* parameter = value.As<std::string>();
    if (structured != nullptr && parameter != nullptr)
      names->emplace(*structured, *parameter);
  }
  return absl::OkStatus();
}

// The same of a .pdiparams.info: variable -> {structured_name, ...}.
void AddInfo(const PickleValue& info, Names* names) {
  const auto* dict = info.As<PickleDict>();
  if (dict == nullptr) return;
  for (const auto& [key, value] : dict->items) {
    const auto* parameter = key.As<std::string>();
    const auto* entry = value.As<PickleDict>();
    const PickleValue* name =
        entry != nullptr ? entry->Find("structured_name") : nullptr;
    const auto* structured =
        name != nullptr ? name->As<std::string>() : nullptr;
    if (parameter != nullptr && structured != nullptr)
      names->emplace(*structured, *parameter);
  }
}

}  // namespace

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const TargetName& target : kTargets) names.push_back(target.name);
  return names;
}

absl::StatusOr<Target> TargetFromName(const std::string& name) {
  for (const TargetName& target : kTargets)
    if (name == target.name) return target.target;
  return InvalidArgument("'%s' is no form to write; expected one of %s", name,
                         absl::StrJoin(TargetNames(), ", "));
}

absl::StatusOr<Target> TargetFromPath(const std::string& path,
                                      const Content& content) {
  if (absl::EndsWith(path, ".pdmodel")) return ModelTarget(content);
  if (absl::EndsWith(path, ".onnx"))
    return InvalidArgument(
        "'%s': pd-export --to onnx writes ONNX models; pd-convert reads their "
        "weights",
        path);
  if (const FileKind kind = DetectKind("", path);
      kind == FileKind::kTorch || kind == FileKind::kTorchExport ||
      kind == FileKind::kTorchScript)
    return InvalidArgument(
        "'%s': files of PyTorch are read, not written; PyTorch reads "
        ".safetensors",
        path);
  if (const FileKind kind = DetectKind("", path); kind == FileKind::kKeras ||
                                                  kind == FileKind::kHdf5 ||
                                                  kind == FileKind::kTflite)
    return InvalidArgument(
        "'%s': files of Keras and TFLite are read, not written; pd-export "
        "--to onnx writes a network",
        path);
  if (const auto target = TargetOfEnding(path)) return *target;
  if (absl::EndsWith(path, ".pdtensor"))
    return content.rows.has_value() ? Target::kSelectedRows : Target::kTensor;
  if (absl::EndsWith(path, "/") || IsFolder(path))
    return content.program.has_value() ? Target::kLegacy : Target::kSeparate;
  if (content.program.has_value() &&
      std::filesystem::path(path).extension().empty())
    return ModelTarget(content);
  return InvalidArgument("the name '%s' does not say what to write: --to does",
                         path);
}

absl::Status RenameTensors(bool to_parameter_names, Content* content) {
  auto* dict = std::get_if<PickleDict>(&content->object.value);
  Names names;
  if (dict != nullptr) PD_RETURN_IF_ERROR(AddTable(*dict, &names));
  AddInfo(content->info, &names);
  if (dict != nullptr && to_parameter_names)
    for (const auto& [key, value] : dict->items)
      if (const PickleTuple* tensor = AsTensor(value))
        if (const auto* structured = key.As<std::string>())
          names.emplace(*structured, *tensor->items[0].As<std::string>());
  if (dict == nullptr || names.empty())
    return InvalidArgument(
        "'%s' has no table of parameter names: neither '%s' nor a "
        ".pdiparams.info",
        content->path, kStructuredNamesKey);
  if (!to_parameter_names) {
    Names reversed;
    for (const auto& [structured, parameter] : names)
      reversed.emplace(parameter, structured);
    names = std::move(reversed);
  }
  std::set<std::string> given;
  PickleDict renamed;
  renamed.ordered = dict->ordered;
  for (auto& [key, value] : dict->items) {
    const auto* name = key.As<std::string>();
    if (name != nullptr && *name == kStructuredNamesKey && to_parameter_names)
      continue;
    const auto other = name != nullptr ? names.find(*name) : names.end();
    if (other != names.end()) {
      // Several structured names of one parameter.
      if (!given.insert(other->second).second) continue;
      key.value = other->second;
    }
    renamed.items.emplace_back(std::move(key), std::move(value));
  }
  *dict = std::move(renamed);
  return absl::OkStatus();
}

}  // namespace pd
