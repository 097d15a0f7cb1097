// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/run_vocabularies.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::string FolderOf(const std::string& run) {
  return absl::StrCat(run, "/vocabularies");
}

// A field's name may hold anything; a file's may not.
std::string PathOf(const std::string& run, const std::string& field) {
  std::string path = absl::StrCat(FolderOf(run), "/");
  for (const char c : field) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
        c == '-') {
      path += c;
    } else {
      absl::StrAppendFormat(&path, "%%%02x", static_cast<unsigned char>(c));
    }
  }
  return absl::StrCat(path, ".txt");
}

std::string TextOf(const Vocabulary& vocabulary) {
  std::string text;
  for (const std::string& token : vocabulary.tokens())
    absl::StrAppend(&text, PrintableToken(token), "\n");
  return text;
}

absl::StatusOr<Vocabulary> ParseTokens(absl::string_view text,
                                       const SpecialTokens& special) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos)
      return DataLoss("line %d has no end", tokens.size() + 1);
    std::string token, what;
    if (!absl::CUnescape(text.substr(0, end), &token, &what))
      return DataLoss("line %d: %s", tokens.size() + 1, what);
    tokens.push_back(std::move(token));
    text.remove_prefix(end + 1);
  }
  return Vocabulary::Make(std::move(tokens), special);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Vocabulary>> RunVocabularies::Find(
    const std::string& field, const SpecialTokens& special) {
  const auto known = known_.find(field);
  if (known != known_.end()) return known->second;
  if (run_.empty()) return nullptr;
  const std::string path = PathOf(run_, field);
  const auto file = ReadFile(path);
  if (absl::IsNotFound(file.status())) return nullptr;
  PD_RETURN_IF_ERROR(file.status());
  auto vocabulary = ParseTokens(file->view(), special);
  if (!vocabulary.ok())
    return Annotate(vocabulary.status(), absl::StrCat("'", path, "'"));
  stored_.insert(field);
  return known_[field] =
             std::make_shared<const Vocabulary>(*std::move(vocabulary));
}

void RunVocabularies::Add(const Dataset& training) {
  for (const auto& [field, vocabulary] : training.vocabularies())
    known_.emplace(field, vocabulary);
}

absl::Status RunVocabularies::Write(const std::string& run) const {
  for (const auto& [field, vocabulary] : known_) {
    if (run == run_ && stored_.count(field) > 0) continue;
    PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(run)));
    PD_RETURN_IF_ERROR(WriteFile(PathOf(run, field), TextOf(*vocabulary)));
  }
  return absl::OkStatus();
}

}  // namespace pd
