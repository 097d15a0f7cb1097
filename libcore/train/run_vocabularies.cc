// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/run_vocabularies.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/preprocess.h"

namespace pd {
namespace {

constexpr char kVocabularies[] = "vocabularies";
constexpr char kEnding[] = ".txt";

// A field's name may hold anything; a file's may not.
std::string FileNameOf(const std::string& field) {
  std::string name;
  for (const char c : field) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
        c == '-') {
      name += c;
    } else {
      absl::StrAppendFormat(&name, "%%%02x", static_cast<unsigned char>(c));
    }
  }
  return name + kEnding;
}

// The field of a file that FileNameOf named.
std::string FieldOf(absl::string_view file) {
  file.remove_suffix(sizeof(kEnding) - 1);
  std::string field;
  for (size_t i = 0; i < file.size(); ++i) {
    if (file[i] == '%' && i + 2 < file.size() &&
        absl::ascii_isxdigit(static_cast<unsigned char>(file[i + 1])) &&
        absl::ascii_isxdigit(static_cast<unsigned char>(file[i + 2]))) {
      field += absl::HexStringToBytes(file.substr(i + 1, 2));
      i += 2;
    } else {
      field += file[i];
    }
  }
  return field;
}

std::string PathOf(const std::string& run, const char* folder,
                   const std::string& field) {
  return absl::StrCat(run, "/", folder, "/", FileNameOf(field));
}

absl::Status WriteNames(const std::string& run, const char* folder,
                        const std::string& field,
                        const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    absl::StrAppend(&text, PrintableToken(name), "\n");
  PD_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(run, "/", folder)));
  return WriteFile(PathOf(run, folder, field), text);
}

absl::StatusOr<std::vector<std::string>> ParseNames(absl::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos)
      return DataLoss("line %d has no end", names.size() + 1);
    std::string name, what;
    if (!absl::CUnescape(text.substr(0, end), &name, &what))
      return DataLoss("line %d: %s", names.size() + 1, what);
    names.push_back(std::move(name));
    text.remove_prefix(end + 1);
  }
  return names;
}

// NotFound where there is no such file.
absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto names = ParseNames(file.view());
  if (!names.ok())
    return Annotate(names.status(), absl::StrCat("'", path, "'"));
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Vocabulary>> RunVocabularies::Find(
    const std::string& field, const SpecialTokens& special) {
  const auto known = known_.find(field);
  if (known != known_.end()) return known->second;
  if (run_.empty()) return nullptr;
  const std::string path = PathOf(run_, kVocabularies, field);
  auto names = ReadNames(path);
  if (absl::IsNotFound(names.status())) return nullptr;
  PD_RETURN_IF_ERROR(names.status());
  auto vocabulary = Vocabulary::Make(*std::move(names), special);
  if (!vocabulary.ok())
    return Annotate(vocabulary.status(), absl::StrCat("'", path, "'"));
  stored_.insert(field);
  return known_[field] =
             std::make_shared<const Vocabulary>(*std::move(vocabulary));
}

absl::StatusOr<std::vector<std::string>> RunVocabularies::Lists::Find(
    const std::string& run, const std::string& field) {
  const auto found = known.find(field);
  if (found != known.end()) return found->second;
  if (run.empty()) return std::vector<std::string>();
  auto names = ReadNames(PathOf(run, folder, field));
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  PD_RETURN_IF_ERROR(names.status());
  stored.insert(field);
  return known[field] = *std::move(names);
}

absl::Status RunVocabularies::Lists::Write(const std::string& from,
                                           const std::string& run) const {
  for (const auto& [field, names] : known)
    if (run != from || stored.count(field) == 0)
      PD_RETURN_IF_ERROR(WriteNames(run, folder, field, names));
  return absl::OkStatus();
}

void RunVocabularies::Add(const Dataset& training) {
  for (const auto& [field, vocabulary] : training.vocabularies())
    known_.emplace(field, vocabulary);
  for (const FieldSpec& field : training.fields()) {
    if (!field.classes.empty())
      classes_.known.emplace(field.name, field.classes);
    if (field.columns.size() > 1)
      columns_.known.emplace(field.name, field.columns);
  }
}

absl::Status RunVocabularies::Write(const std::string& run) const {
  for (const auto& [field, vocabulary] : known_)
    if (run != run_ || stored_.count(field) == 0)
      PD_RETURN_IF_ERROR(
          WriteNames(run, kVocabularies, field, vocabulary->tokens()));
  PD_RETURN_IF_ERROR(classes_.Write(run_, run));
  return columns_.Write(run_, run);
}

absl::StatusOr<NamesByField> ReadRunClasses(const std::string& run) {
  namespace fs = std::filesystem;
  const std::string folder = absl::StrCat(run, "/classes");
  NamesByField classes;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != kEnding) continue;
    PD_ASSIGN_OR_RETURN(classes[FieldOf(it->path().filename().string())],
                        ReadNames(it->path().string()));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot read '", folder, "'"));
  return classes;
}

std::string RunOfJobFile(const std::string& config) {
  namespace fs = std::filesystem;
  const fs::path path(config);
  if (path.filename() != "job.pbtxt") return NamesOfPreprocess(config);
  const fs::path run = path.has_parent_path() ? path.parent_path() : ".";
  for (const char* folder : {"checkpoints", "classes", "vocabularies"})
    if (IsFolder((run / folder).string())) return run.string();
  return "";
}

}  // namespace pd
