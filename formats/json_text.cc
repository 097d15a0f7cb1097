// SPDX-License-Identifier: Apache-2.0
#include "formats/json_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  const auto put = [out](uint32_t byte) { *out += static_cast<char>(byte); };
  const auto more = [&put, c](int shift) { put(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    more(0);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    more(6);
    more(0);
  } else {
    put(0xf0 | c >> 18);
    more(12);
    more(6);
    more(0);
  }
}

// The character at the start of `text`; its length, 0 when it is none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and what is beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return size;
}

}  // namespace

void JsonReader::SkipBlanks() {
  while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' ||
                            rest_[0] == '\r' || rest_[0] == '\t'))
    rest_.remove_prefix(1);
}

bool JsonReader::Take(char c) {
  SkipBlanks();
  if (rest_.empty() || rest_[0] != c) return false;
  rest_.remove_prefix(1);
  return true;
}

absl::Status JsonReader::Bad(absl::string_view expected) const {
  return DataLoss("byte %d of the header: '%s' stands there; expected %s",
                  text_.size() - rest_.size(), rest_.substr(0, 16), expected);
}

absl::Status JsonReader::End() {
  SkipBlanks();
  return rest_.empty() ? absl::OkStatus() : Bad("its end");
}

absl::StatusOr<int64_t> JsonReader::Count() {
  SkipBlanks();
  size_t digits = 0;
  while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9')
    ++digits;
  int64_t value = 0;
  if (digits == 0 || (digits > 1 && rest_[0] == '0') ||
      !absl::SimpleAtoi(rest_.substr(0, digits), &value))
    return Bad("an integer of 0 or more");
  rest_.remove_prefix(digits);
  return value;
}

absl::StatusOr<uint32_t> JsonReader::Hex4() {
  uint32_t value = 0;
  if (rest_.size() < 4) return Bad("four hexadecimal digits");
  for (size_t i = 0; i < 4; ++i) {
    const char c = rest_[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return Bad("four hexadecimal digits");
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  rest_.remove_prefix(4);
  return value;
}

absl::Status JsonReader::Escape(std::string* out) {
  constexpr absl::string_view kNames = "\"\\/bfnrt";
  constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (rest_.empty()) return Bad("an escape");
  const char name = rest_[0];
  const size_t at = kNames.find(name);
  if (name != 'u' && at == absl::string_view::npos) return Bad("an escape");
  rest_.remove_prefix(1);
  if (name != 'u') {
    *out += kMeanings[at];
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(uint32_t c, Hex4());
  if (c >= 0xd800 && c < 0xdc00 && rest_.substr(0, 2) == "\\u") {
    rest_.remove_prefix(2);
    PD_ASSIGN_OR_RETURN(const uint32_t low, Hex4());
    if (low < 0xdc00 || low > 0xdfff) return Bad("a low surrogate before it");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  if (c >= 0xd800 && c < 0xe000) return Bad("no lone surrogate before it");
  AppendUtf8(c, out);
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonReader::String() {
  if (!Take('"')) return Bad("a string");
  std::string out;
  for (;;) {
    if (rest_.empty()) return Bad("the end of a string");
    const char c = rest_[0];
    if (static_cast<unsigned char>(c) < 0x20) return Bad("no control byte");
    if (c == '"' || c == '\\') {
      rest_.remove_prefix(1);
      if (c == '"') return out;
      PD_RETURN_IF_ERROR(Escape(&out));
      continue;
    }
    const size_t size = Utf8Length(rest_);
    if (size == 0) return Bad("UTF-8");
    out.append(rest_.data(), size);
    rest_.remove_prefix(size);
  }
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8Length(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void AppendJsonString(absl::string_view text, std::string* out) {
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      *out += c;
    }
  }
  *out += '"';
}

}  // namespace pd
