// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<Vocabulary> Vocabulary::Make(std::vector<std::string> tokens,
                                            const SpecialTokens& special) {
  Vocabulary vocabulary;
  vocabulary.tokens_ =
      std::make_unique<std::vector<std::string>>(std::move(tokens));
  PD_RETURN_IF_ERROR(vocabulary.Index(special));
  return vocabulary;
}

absl::StatusOr<Vocabulary> Vocabulary::Read(const std::string& path,
                                            const SpecialTokens& special) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFileGunzip(path));
  std::vector<std::string> tokens;
  absl::string_view rest = file.view();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    absl::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    line = line.substr(0, line.find('\t'));
    if (line.empty() && rest.empty()) break;  // an empty last line
    tokens.emplace_back(line);
  }
  if (tokens.empty())
    return DataLoss("'%s': the file is empty; expected a token a line", path);
  auto vocabulary = Make(std::move(tokens), special);
  if (!vocabulary.ok())
    return Annotate(vocabulary.status(), absl::StrCat("'", path, "'"));
  return vocabulary;
}

absl::Status Vocabulary::Index(const SpecialTokens& special) {
  numbers_.reserve(tokens_->size());
  for (size_t i = 0; i < tokens_->size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const auto [entry, added] = numbers_.emplace((*tokens_)[i], number);
    if (!added)
      return AlreadyExists("line %d: '%s' stands on line %d already", i + 1,
                           absl::CHexEscape((*tokens_)[i]), entry->second + 1);
  }
  pad_ = Find(special.pad);
  unk_ = Find(special.unk);
  bos_ = Find(special.bos);
  eos_ = Find(special.eos);
  return absl::OkStatus();
}

int64_t Vocabulary::Find(absl::string_view token) const {
  const auto found = numbers_.find(token);
  return found != numbers_.end() ? found->second : -1;
}

VocabularyBuilder::VocabularyBuilder(const SpecialTokens& special)
    : special_(special) {
  for (const std::string* token :
       {&special_.pad, &special_.unk, &special_.bos, &special_.eos})
    Add(*token);
}

int64_t VocabularyBuilder::Add(absl::string_view token) {
  const auto found = numbers_.find(token);
  if (found != numbers_.end()) {
    ++entries_[static_cast<size_t>(found->second)]->count;
    return found->second;
  }
  const auto number = static_cast<int64_t>(entries_.size());
  entries_.push_back(std::make_unique<Entry>());
  entries_.back()->token = std::string(token);
  entries_.back()->count = 1;
  numbers_.emplace(entries_.back()->token, number);
  return number;
}

absl::StatusOr<Vocabulary> VocabularyBuilder::Build(
    int64_t min_freq, int64_t max_size, std::vector<int64_t>* renumber) const {
  std::vector<size_t> order(entries_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto kept = std::min<size_t>(kEos + 1, order.size());
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
            [this](size_t a, size_t b) {
              const Entry &x = *entries_[a], &y = *entries_[b];
              return x.count != y.count ? x.count > y.count : x.token < y.token;
            });
  renumber->assign(entries_.size(), kUnk);
  std::vector<std::string> tokens;
  for (size_t i = 0; i < order.size(); ++i) {
    const Entry& entry = *entries_[order[i]];
    if (i >= kept &&
        (entry.count < min_freq ||
         (max_size > 0 && static_cast<int64_t>(tokens.size()) >= max_size)))
      break;
    (*renumber)[order[i]] = static_cast<int64_t>(tokens.size());
    tokens.push_back(entry.token);
  }
  return Vocabulary::Make(std::move(tokens), special_);
}

std::vector<std::string> VocabularyBuilder::tokens() const {
  std::vector<std::string> tokens;
  for (const auto& entry : entries_) tokens.push_back(entry->token);
  return tokens;
}

absl::StatusOr<Vocabulary> VocabularyBuilder::Sorted() const {
  std::vector<std::string> sorted = tokens();
  std::sort(sorted.begin(), sorted.end());
  return Vocabulary::Make(std::move(sorted));
}

std::string PrintableToken(absl::string_view token) {
  std::string text;
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_iscntrl(byte) || c == '\\')
      absl::StrAppendFormat(&text, "\\%03o", byte);
    else
      text += c;
  }
  return text;
}

}  // namespace pd
