// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_script.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "formats/pickle_machine.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using pickle::Kind;
using pickle::Machine;
using pickle::Node;

constexpr int kMostLevels = 64;
constexpr int64_t kMostZeros = int64_t{1} << 26;
constexpr absl::string_view kConstantsName = "/constants.pkl";

// The storages of a pickle of the archive: files in a folder of its name.
class ScriptStorages : public pickle::StorageSource {
 public:
  ScriptStorages(ZipArchive* zip, std::string folder, bool big_endian,
                 uint64_t file_size)
      : zip_(zip),
        folder_(std::move(folder)),
        big_endian_(big_endian),
        file_size_(file_size) {}

  absl::StatusOr<FileBytes> Storage(absl::string_view key,
                                    const RawLayout& layout,
                                    int64_t count) override {
    const auto known = read_.find(std::string(key));
    if (known != read_.end()) return known->second;
    const std::string name = absl::StrCat(folder_, "/", key);
    auto bytes = zip_->Read(name);
    if (!bytes.ok())
      return Annotate(bytes.status(), absl::StrCat("entry '", name, "'"));
    if (bytes->size == 0 && count > 0) {
      PD_ASSIGN_OR_RETURN(*bytes, Zeros(count, SizeOf(layout.dtype)));
    }
    return read_[std::string(key)] = *std::move(bytes);
  }
  bool big_endian() const override { return big_endian_; }
  bool script() const override { return true; }
  uint64_t file_size() const override { return file_size_; }

 private:
  // Inputs of a trace are in the archive without their elements.
  static absl::StatusOr<FileBytes> Zeros(int64_t count, size_t element) {
    PD_ASSIGN_OR_RETURN(const int64_t size, CheckedBytes({count}, element));
    if (size > kMostZeros)
      return ResourceExhausted("an input of %d bytes", size);
    std::byte* to = nullptr;
    PD_ASSIGN_OR_RETURN(const Array zeros,
                        NewArray(DType::kUInt8, {size}, &to));
    std::memset(to, 0, static_cast<size_t>(size));
    return FileBytes{zeros.bytes, static_cast<size_t>(size)};
  }

  ZipArchive* zip_;
  std::string folder_;
  bool big_endian_;
  uint64_t file_size_;
  std::map<std::string, FileBytes> read_;
};

// Modules and what they hold, numbered in the order of their first mention.
class ModuleTree {
 public:
  ModuleTree(uint64_t file_size, TorchScript* out)
      : file_size_(file_size), out_(out) {}

  absl::StatusOr<int64_t> Object(const Node& node, int level) {
    if (level > kMostLevels)
      return InvalidArgument("its modules lie over %d levels deep",
                             kMostLevels);
    const auto known = numbers_.find(&node);
    if (known != numbers_.end()) return known->second;
    const auto number = static_cast<int64_t>(out_->objects.size());
    numbers_[&node] = number;
    out_->objects.emplace_back();
    TorchScriptObject object;
    object.type = std::string(node.text);
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      if (!node.items[i]->IsText())
        return DataLoss("an attribute of '%s' has no name", object.type);
      const std::string name(node.items[i]->text);
      const Node& value = *node.items[i + 1];
      TorchScriptAttribute attribute;
      if (value.object) {
        PD_ASSIGN_OR_RETURN(attribute.object, Object(value, level + 1));
      } else {
        auto tree = pickle::TreeOf(value, file_size_);
        if (!tree.ok())
          return Annotate(tree.status(), absl::StrCat("'", name, "'"));
        attribute.value = *std::move(tree);
      }
      object.attributes[name] = std::move(attribute);
    }
    out_->objects[static_cast<size_t>(number)] = std::move(object);
    return number;
  }

 private:
  uint64_t file_size_;
  TorchScript* out_;
  std::unordered_map<const Node*, int64_t> numbers_;
};

absl::StatusOr<std::string> RootOf(const ZipArchive& zip) {
  for (int64_t i = 0; i < zip.count(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::string full_name, zip.Name(i));
    absl::string_view name = full_name;
    if (absl::ConsumeSuffix(&name, kConstantsName) &&
        name.find('/') == absl::string_view::npos)
      return std::string(name);
  }
  return DataLoss("it has no entry 'NAME%s' of torch.jit.save", kConstantsName);
}

absl::Status TakeSources(ZipArchive* zip, const std::string& root,
                         TorchScript* out) {
  const std::string folder = absl::StrCat(root, "/code/");
  for (int64_t i = 0; i < zip->count(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::string full_name, zip->Name(i));
    absl::string_view name = full_name;
    if (!absl::ConsumePrefix(&name, folder) ||
        !absl::ConsumeSuffix(&name, ".py"))
      continue;
    PD_ASSIGN_OR_RETURN(const FileBytes text, zip->Read(full_name));
    out->sources[absl::StrReplaceAll(name, {{"/", "."}})] =
        std::string(text.view());
  }
  if (out->sources.empty())
    return DataLoss("it has no source '%s...py'", folder);
  return absl::OkStatus();
}

void TakeWeights(const TorchScript& script, size_t number,
                 const std::string& prefix, int level, NamedArrays* out) {
  if (level > kMostLevels) return;
  for (const auto& [name, attribute] : script.objects[number].attributes) {
    const std::string full = prefix + name;
    if (attribute.object >= 0)
      TakeWeights(script, static_cast<size_t>(attribute.object), full + ".",
                  level + 1, out);
    else if (const Array* array = attribute.value.As<Array>())
      (*out)[full] = *array;
  }
}

struct ScriptArchive {
  ZipArchive* zip;
  std::string root;
  bool big_endian;
  uint64_t file_size;
};

// Hands the value of a pickle of the archive to `take`.
template <typename Take>
absl::Status ReadPart(const ScriptArchive& archive, const std::string& part,
                      const Take& take) {
  const std::string name = absl::StrCat(archive.root, "/", part, ".pkl");
  const auto read = [&]() -> absl::Status {
    PD_ASSIGN_OR_RETURN(const FileBytes bytes, archive.zip->Read(name));
    ScriptStorages storages(archive.zip, absl::StrCat(archive.root, "/", part),
                            archive.big_endian, archive.file_size);
    Machine machine(bytes, Alignment::kNatural, &storages);
    PD_ASSIGN_OR_RETURN(const Node* node, machine.Run());
    return take(*node);
  };
  return Annotate(read(), absl::StrCat("entry '", name, "'"));
}

// {"forward": (tensor, ...)}; None stands for what is no tensor.
void TakeTraced(const PickleValue& value, TorchScript* out) {
  const auto* methods = value.As<PickleDict>();
  const PickleValue* forward =
      methods == nullptr ? nullptr : methods->Find("forward");
  if (forward == nullptr) return;
  const auto* tuple = forward->As<PickleTuple>();
  const auto* list = forward->As<PickleList>();
  if (tuple != nullptr)
    out->traced = tuple->items;
  else if (list != nullptr)
    out->traced = list->items;
}

}  // namespace

bool IsTorchScript(absl::string_view bytes) {
  // The directory at the end lists the names of all entries.
  constexpr size_t kDirectory = size_t{4} << 20;
  return !FirstZipName(bytes).empty() &&
         absl::StrContains(
             bytes.substr(bytes.size() - std::min(bytes.size(), kDirectory)),
             kConstantsName);
}

absl::StatusOr<TorchScript> ParseTorchScript(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
  ScriptArchive archive{&zip, "", false, file.size};
  PD_ASSIGN_OR_RETURN(archive.root, RootOf(zip));
  const auto order = zip.Read(absl::StrCat(archive.root, "/byteorder"));
  archive.big_endian = order.ok() && order->view() == "big";
  TorchScript out;
  PD_RETURN_IF_ERROR(
      ReadPart(archive, "constants", [&](const Node& node) -> absl::Status {
        PD_ASSIGN_OR_RETURN(const PickleValue values,
                            pickle::TreeOf(node, file.size));
        const auto* tuple = values.As<PickleTuple>();
        if (tuple == nullptr) return DataLoss("it is no tuple");
        out.constants = tuple->items;
        return absl::OkStatus();
      }));
  PD_RETURN_IF_ERROR(
      ReadPart(archive, "data", [&](const Node& node) -> absl::Status {
        if (!node.object) return DataLoss("its value is no module");
        return ModuleTree(file.size, &out).Object(node, 0).status();
      }));
  const absl::Status traced =
      ReadPart(archive, "traced_inputs", [&](const Node& node) -> absl::Status {
        PD_ASSIGN_OR_RETURN(const PickleValue values,
                            pickle::TreeOf(node, file.size));
        TakeTraced(values, &out);
        return absl::OkStatus();
      });
  // A scripted archive has no such entry.
  if (!traced.ok() && !absl::IsNotFound(traced))
    LogWarning(
        "%s; the network is whole without it, only the shapes of its "
        "inputs have to be given",
        traced.message());
  PD_RETURN_IF_ERROR(TakeSources(&zip, archive.root, &out));
  return out;
}

NamedArrays TorchScriptWeights(const TorchScript& script) {
  NamedArrays weights;
  if (!script.objects.empty()) TakeWeights(script, 0, "", 0, &weights);
  return weights;
}

}  // namespace pd
