// SPDX-License-Identifier: Apache-2.0
// Cutting texts at blanks, characters and punctuation. What BERT's basic
// tokenizer does is told by Unicode's categories, which utf8proc knows.
#include <utf8proc.h>

#include <string>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/tokenizer.h"

namespace pd {
namespace {

using TokenCall = std::function<absl::Status(absl::string_view)>;

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The character at `text`'s beginning and its bytes; damaged bytes, which
// callers have refused before, count as U+FFFD.
utf8proc_int32_t Decode(absl::string_view text, size_t* bytes) {
  utf8proc_int32_t character = 0;
  const auto size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character);
  *bytes = size > 0 ? static_cast<size_t>(size) : 1;
  return size > 0 ? character : 0xFFFD;
}

void Append(utf8proc_int32_t character, std::string* out) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(character, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

// ASCII that is no letter, digit or blank counts, too: "$", "^", "`".
bool IsPunctuation(utf8proc_int32_t c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
      (c >= 123 && c <= 126))
    return true;
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsChinese(utf8proc_int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// Lower case, then decomposed and without marks.
void AppendPlain(utf8proc_int32_t character, std::string* out) {
  utf8proc_int32_t parts[32];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(utf8proc_tolower(character), parts,
                                             32, UTF8PROC_DECOMPOSE, &boundary);
  for (utf8proc_ssize_t i = 0; i < count && i < 32; ++i)
    if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN)
      Append(parts[i], out);
}

absl::Status SplitAtBlanks(absl::string_view text, const TokenCall& token) {
  size_t at = 0;
  for (;;) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    if (at == text.size()) return absl::OkStatus();
    const size_t begin = at;
    while (at < text.size() && !IsBlank(text[at])) ++at;
    PD_RETURN_IF_ERROR(token(text.substr(begin, at - begin)));
  }
}

absl::Status SplitCharacters(absl::string_view text, const TokenCall& token) {
  for (size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    Decode(text, &bytes);
    PD_RETURN_IF_ERROR(token(text.substr(0, bytes)));
  }
  return absl::OkStatus();
}

absl::Status SplitPunctuation(absl::string_view word, const TokenCall& token) {
  size_t begin = 0, bytes = 0;
  for (size_t at = 0; at < word.size(); at += bytes) {
    if (!IsPunctuation(Decode(word.substr(at), &bytes))) continue;
    if (at > begin) PD_RETURN_IF_ERROR(token(word.substr(begin, at - begin)));
    PD_RETURN_IF_ERROR(token(word.substr(at, bytes)));
    begin = at + bytes;
  }
  return begin < word.size() ? token(word.substr(begin)) : absl::OkStatus();
}

}  // namespace

absl::Status SplitText(TokenizerKind kind, absl::string_view text,
                       const TokenCall& token) {
  switch (kind) {
    case TokenizerKind::kWhitespace:
      return SplitAtBlanks(text, token);
    case TokenizerKind::kCharacter:
      return SplitCharacters(text, token);
    case TokenizerKind::kBasic:
      return SplitAtBlanks(text, [&token](absl::string_view word) {
        return SplitPunctuation(word, token);
      });
    default:
      break;
  }
  PD_INVARIANT(!"this tokenizer does not split by itself");
  return absl::OkStatus();
}

std::string CleanForBert(absl::string_view text, bool lower) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    const utf8proc_int32_t c = Decode(text, &bytes);
    const auto category = utf8proc_category(c);
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' ||
        category == UTF8PROC_CATEGORY_ZS) {
      clean.push_back(' ');
    } else if (c == 0 || c == 0xFFFD ||
               (category >= UTF8PROC_CATEGORY_CC &&
                category <= UTF8PROC_CATEGORY_CO) ||
               category == UTF8PROC_CATEGORY_CN) {
      continue;
    } else if (IsChinese(c)) {
      clean.push_back(' ');
      Append(c, &clean);
      clean.push_back(' ');
    } else if (lower) {
      AppendPlain(c, &clean);
    } else {
      Append(c, &clean);
    }
  }
  return clean;
}

void LowerUtf8(absl::string_view text, std::string* lower) {
  lower->clear();
  for (size_t bytes = 0; !text.empty(); text.remove_prefix(bytes))
    Append(utf8proc_tolower(Decode(text, &bytes)), lower);
}

}  // namespace pd
