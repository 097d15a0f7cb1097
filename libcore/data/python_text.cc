// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/python_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd::python {
namespace {

// The first character's code point and length; a byte that starts none counts
// as one of its own.
struct Character {
  uint32_t code = 0;
  size_t size = 0;
  bool good = true;
};

Character First(absl::string_view text) {
  const auto byte = [&text](size_t i) -> uint32_t {
    return static_cast<unsigned char>(text[i]);
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const Character bad = {lead, 1, false};
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return bad;
  uint32_t code = lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return bad;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool shorter =
      (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (shorter || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return bad;
  return {code, size, true};
}

bool IsBlank(uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) ||
         code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

// Bytes of the blank that `text` starts with; 0 when it starts with none.
size_t BlankAt(absl::string_view text, Blanks blanks) {
  if (blanks == Blanks::kBytes)
    return absl::ascii_isspace(static_cast<unsigned char>(text[0])) ? 1 : 0;
  const Character first = First(text);
  return first.good && IsBlank(first.code) ? first.size : 0;
}

}  // namespace

std::vector<absl::string_view> Split(absl::string_view text, Blanks blanks) {
  std::vector<absl::string_view> words;
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const size_t blank = BlankAt(text.substr(at), blanks);
    if (blank == 0) {
      ++at;
      continue;
    }
    if (at > begin) words.push_back(text.substr(begin, at - begin));
    at += blank;
    begin = at;
  }
  if (at > begin) words.push_back(text.substr(begin));
  return words;
}

absl::string_view Strip(absl::string_view text, Blanks blanks) {
  const std::vector<absl::string_view> words = Split(text, blanks);
  if (words.empty()) return text.substr(0, 0);
  const char* begin = words.front().data();
  const char* end = words.back().data() + words.back().size();
  return {begin, static_cast<size_t>(end - begin)};
}

absl::Status CheckUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Character first = First(text.substr(at));
    if (!first.good)
      return DataLoss("byte %d is %#x, which is not UTF-8", at, first.code);
    at += first.size;
  }
  return absl::OkStatus();
}

std::string DecodeLatin1(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      text += c;
      continue;
    }
    text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
  return text;
}

std::string LowerLatin1(absl::string_view text) {
  std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 1; i < lower.size(); ++i) {
    // U+00C0 to U+00DE but the multiplication sign.
    const auto code = static_cast<unsigned char>(lower[i]);
    if (lower[i - 1] == '\xc3' && code >= 0x80 && code <= 0x9e && code != 0x97)
      lower[i] = static_cast<char>(code + 0x20);
  }
  return lower;
}

absl::Status ForEachLine(
    absl::string_view text,
    const std::function<absl::Status(absl::string_view line, int64_t number)>&
        visit) {
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::Status status = visit(text.substr(0, end), ++number);
    if (!status.ok()) return Annotate(status, absl::StrCat("line ", number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return absl::OkStatus();
}

}  // namespace pd::python
