// SPDX-License-Identifier: Apache-2.0
// The file: a line with its version, a line for each choice (its key, a tab,
// two numbers), and a last one that says how many there are.
#include "libcore/device/choice_cache.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr absl::string_view kHeader = "pdkit choices 2";
constexpr size_t kMostBytes = size_t{16} << 20;
constexpr int kMostNumber = 1000000;

std::string CacheFolder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  // Relative paths are to be ignored.
  if (xdg != nullptr && *xdg == '/') return absl::StrCat(xdg, "/pdkit");
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return absl::StrCat(home, "/.cache/pdkit");
  return "";
}

absl::StatusOr<int> Number(absl::string_view text) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 || number >= kMostNumber)
    return DataLoss("'%s' is no number below %d", text, kMostNumber);
  return number;
}

absl::Status ParseLine(absl::string_view line, ChoiceCache::Choices* choices) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, '\t');
  if (parts.size() != 3 || parts[0].empty())
    return DataLoss("a key and two numbers are expected");
  KeptChoice choice;
  PD_ASSIGN_OR_RETURN(choice.position, Number(parts[1]));
  PD_ASSIGN_OR_RETURN(choice.engine, Number(parts[2]));
  if (!choices->emplace(std::string(parts[0]), choice).second)
    return DataLoss("its key was there before");
  return absl::OkStatus();
}

}  // namespace

ChoiceCache& ChoiceCache::OfUser(absl::string_view name) {
  static auto* const kCaches = new std::map<std::string, ChoiceCache>;
  static auto* const kMutex = new std::mutex;
  const std::string folder = CacheFolder();
  const std::string path =
      folder.empty() ? std::string() : absl::StrCat(folder, "/", name);
  std::lock_guard<std::mutex> lock(*kMutex);
  const auto [at, added] = kCaches->try_emplace(path, path);
  if (added && path.empty())
    LogWarning(
        "choices are not kept: neither XDG_CACHE_HOME nor HOME is a folder's "
        "name");
  return at->second;
}

std::string ChoiceCache::Text(const Choices& choices) {
  std::string text = absl::StrCat(kHeader, "\n");
  for (const auto& [key, choice] : choices)
    absl::StrAppend(&text, key, "\t", choice.position, "\t", choice.engine,
                    "\n");
  absl::StrAppend(&text, "end ", choices.size(), "\n");
  return text;
}

absl::StatusOr<ChoiceCache::Choices> ChoiceCache::Parse(
    absl::string_view text) {
  if (text.size() > kMostBytes)
    return DataLoss("it has %d bytes; expected %d at most", text.size(),
                    kMostBytes);
  if (!absl::ConsumeSuffix(&text, "\n"))
    return DataLoss("its last line has no end");
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kHeader)
    return DataLoss("it does not begin with '%s'", kHeader);
  const size_t last = lines.size() - 1;
  Choices choices;
  for (size_t i = 1; i < last; ++i)
    PD_RETURN_IF_ERROR(
        Annotate(ParseLine(lines[i], &choices), absl::StrCat("line ", i + 1)));
  if (last == 0 || lines[last] != absl::StrCat("end ", choices.size()))
    return DataLoss("line %d: expected 'end %d'", last + 1, choices.size());
  return choices;
}

void ChoiceCache::Read() {
  read_ = true;
  if (path_.empty()) return;
  const auto file = ReadFile(path_);
  if (absl::IsNotFound(file.status())) return;
  auto choices =
      file.ok() ? Parse(file->view()) : absl::StatusOr<Choices>(file.status());
  if (!choices.ok()) {
    LogWarning("'%s' is not used and will be written anew: %s", path_,
               std::string(choices.status().message()));
    return;
  }
  // Choices that this process knows are newer.
  choices_.merge(*std::move(choices));
}

std::optional<KeptChoice> ChoiceCache::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!read_) Read();
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void ChoiceCache::Keep(const std::string& key, KeptChoice choice) {
  std::lock_guard<std::mutex> lock(mutex_);
  choices_[key] = choice;
  // Another process may have added to it.
  Read();
  if (path_.empty()) return;
  absl::Status status = MakeDirectories(path_.substr(0, path_.rfind('/')));
  if (status.ok()) status = WriteFile(path_, Text(choices_));
  if (!status.ok())
    LogWarning("a choice is not kept: %s", std::string(status.message()));
}

}  // namespace pd
