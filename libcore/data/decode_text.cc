// SPDX-License-Identifier: Apache-2.0
// From the numbers of tokens back to a text.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "formats/json_text.h"
#include "libcore/data/sentence_pieces.h"
#include "libcore/data/tokenizer.h"

namespace pd {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// Whether a blank stands in front of a token that is not the first.
bool HasBlankBefore(TokenizerKind kind, absl::string_view token) {
  switch (kind) {
    case TokenizerKind::kWhitespace:
    case TokenizerKind::kBasic:
      return true;
    case TokenizerKind::kWordpiece:
      return !absl::StartsWith(token, "##");
    default:
      return false;
  }
}

// Bytes that are no UTF-8 as U+FFFD: a network that makes bytes makes any.
std::string ReplaceWrongBytes(const std::string& text) {
  if (IsUtf8(text)) return text;
  std::string replaced;
  absl::string_view rest = text;
  while (!rest.empty()) {
    size_t length = 1;
    while (length <= 4 && !IsUtf8(rest.substr(0, length))) ++length;
    if (length > 4) {
      replaced += kReplacement;
      length = 1;
    } else {
      replaced.append(rest.data(), length);
    }
    rest.remove_prefix(std::min(length, rest.size()));
  }
  return replaced;
}

}  // namespace

std::string TextEncoder::Decode(const int64_t* ids, size_t count) const {
  std::vector<int64_t> kept;
  const bool has_pad = options_.vocabulary != nullptr
                           ? options_.vocabulary->pad() >= 0
                           : options_.kind == TokenizerKind::kSentencePiece;
  for (size_t i = 0; i < count && (ids[i] != eos() || eos() < 0); ++i)
    if (ids[i] != bos() && !(has_pad && ids[i] == pad()))
      kept.push_back(ids[i]);
  if (sentence_pieces_ != nullptr) {
    std::vector<int> pieces;
    for (const int64_t id : kept)
      if (id >= 0 && id < sentence_pieces_->size())
        pieces.push_back(static_cast<int>(id));
    return ReplaceWrongBytes(sentence_pieces_->Decode(pieces));
  }
  std::string text;
  for (const int64_t id : kept) {
    if (options_.kind == TokenizerKind::kByte) {
      if (id >= 0 && id < 256) text += static_cast<char>(id);
      continue;
    }
    const bool known = options_.vocabulary != nullptr && id >= 0 &&
                       id < options_.vocabulary->size();
    absl::string_view token = kReplacement;
    if (known) token = options_.vocabulary->tokens()[static_cast<size_t>(id)];
    const bool blank = HasBlankBefore(options_.kind, token);
    if (!text.empty() && blank) text += ' ';
    if (options_.kind == TokenizerKind::kWordpiece && !blank)
      token.remove_prefix(2);
    text.append(token.data(), token.size());
  }
  return ReplaceWrongBytes(text);
}

}  // namespace pd
