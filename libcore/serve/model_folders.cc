// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/model_folders.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 100000;

// A name that an address holds as it stands.
bool IsName(absl::string_view text) {
  return !text.empty() && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

bool IsVersion(const std::string& name, int64_t* version) {
  return !name.empty() && name.size() <= 18 && name[0] != '0' &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(name, version);
}

// The folders in a folder, by name; none where it cannot be read.
std::vector<std::string> FoldersIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end;
       !error && i != end && names.size() < kMostFiles; i.increment(error))
    if (IsFolder(i->path().string()))
      names.push_back(i->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool HasVersions(const std::string& folder) {
  int64_t version = 0;
  for (const std::string& name : FoldersIn(folder))
    if (IsVersion(name, &version)) return true;
  return false;
}

bool HasFiles(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error))
    if (IsFile(i->path().string())) return true;
  return false;
}

// The last part of a path without the ending of a model's file.
std::string NameOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const fs::path last = fs::path(path).filename();
  for (const char* ending : {".pdmodel", ".onnx", ".json"})
    if (last.extension() == ending) return last.stem().string();
  return last.string();
}

// A folder of models: no files of a model, but folders.
bool IsFolderOfModels(const std::string& path) {
  return IsFolder(path) && !HasFiles(path) && !ModelsIn(path).empty();
}

absl::Status AddPlaces(const std::string& argument, ModelPlaces* places) {
  std::string name, path = argument;
  const size_t at = argument.find('=');
  if (at != std::string::npos && !Exists(argument)) {
    name = argument.substr(0, at);
    path = argument.substr(at + 1);
    if (!IsName(name))
      return InvalidArgument(
          "'%s': the name of a served model has letters, digits, '_', '-' and "
          "'.'",
          Printable(argument));
  }
  if (name.empty() && IsFolder(path) && !HasVersions(path) &&
      IsFolderOfModels(path)) {
    places->folders.push_back(path);
    for (ModelPlace& place : ModelsIn(path))
      places->models.push_back(std::move(place));
    return absl::OkStatus();
  }
  if (name.empty()) name = NameOf(path);
  if (!IsName(name))
    return InvalidArgument(
        "'%s': say under which name it is served, as in NAME=%s",
        Printable(argument), Printable(path));
  places->models.push_back({name, path, IsFolder(path) && HasVersions(path)});
  return absl::OkStatus();
}

}  // namespace

std::vector<ModelPlace> ModelsIn(const std::string& folder) {
  std::vector<ModelPlace> models;
  for (const std::string& name : FoldersIn(folder)) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!IsName(name)) continue;
    const bool versioned = HasVersions(path);
    if (versioned || HasFiles(path)) models.push_back({name, path, versioned});
  }
  return models;
}

absl::StatusOr<ModelPlaces> PlacesOf(
    const std::vector<std::string>& arguments) {
  ModelPlaces places;
  for (const std::string& argument : arguments)
    PD_RETURN_IF_ERROR(AddPlaces(argument, &places));
  std::set<std::string> names;
  for (const ModelPlace& place : places.models)
    if (!names.insert(place.name).second)
      return InvalidArgument(
          "two models are called '%s': give one of them another name, as in "
          "NAME=%s",
          place.name, Printable(place.path));
  return places;
}

std::map<int64_t, std::string> VersionsOf(const ModelPlace& place) {
  std::map<int64_t, std::string> versions;
  if (!place.versioned) {
    versions[1] = place.path;
    return versions;
  }
  int64_t version = 0;
  for (const std::string& name : FoldersIn(place.path))
    if (IsVersion(name, &version))
      versions[version] = absl::StrCat(place.path, "/", name);
  return versions;
}

std::string Fingerprint(const std::string& path) {
  std::string text;
  std::error_code error;
  const auto add = [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    absl::StrAppend(
        &text, entry.path().string(), " ", entry.file_size(ignored), " ",
        entry.last_write_time(ignored).time_since_epoch().count(), "\n");
  };
  size_t files = 0;
  if (IsFolder(path)) {
    for (fs::recursive_directory_iterator i(path, error), end;
         !error && i != end && ++files < kMostFiles; i.increment(error))
      add(*i);
    return text;
  }
  // A prefix, or a file with others beside it.
  const std::string stem = NameOf(path);
  for (fs::directory_iterator i(FolderOf(path), error), end;
       !error && i != end && ++files < kMostFiles; i.increment(error))
    if (absl::StartsWith(i->path().filename().string(), stem)) add(*i);
  return text;
}

}  // namespace serve
}  // namespace pd
