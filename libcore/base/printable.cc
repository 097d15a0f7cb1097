// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/printable.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace pd {
namespace {

// Bytes of the UTF-8 character that `first` begins; 0 where none begins so.
size_t LengthOf(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

bool Continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Bytes of the character at the start of `text` that a terminal only shows; 0
// for control characters and bytes that are no UTF-8.
size_t ShownAt(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = LengthOf(first);
  if (length == 0 || length > text.size()) return 0;
  if (length == 1) return first >= 0x20 && first != 0x7f ? 1 : 0;
  uint32_t point = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!Continues(text[i])) return 0;
    point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  static constexpr uint32_t kFirstOf[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (point < kFirstOf[length] || point > 0x10ffff || surrogate) return 0;
  return point < 0xa0 ? 0 : length;
}

std::string Escaped(absl::string_view text, bool lines) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t shown = ShownAt(text.substr(i));
    if (shown > 0) {
      safe.append(text.data() + i, shown);
    } else if (lines && (c == '\n' || c == '\t')) {
      safe.push_back(c);
    } else if (c == '\n' || c == '\t' || c == '\r') {
      safe.append(c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
    } else {
      absl::StrAppendFormat(&safe, "\\x%02x", static_cast<unsigned char>(c));
    }
    i += shown > 0 ? shown : 1;
  }
  return safe;
}

}  // namespace

std::string Printable(absl::string_view text) { return Escaped(text, false); }

std::string PrintableLines(absl::string_view text) {
  return Escaped(text, true);
}

size_t WholeCharacters(absl::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const char c = text[text.size() - back];
    if (Continues(c)) continue;
    return LengthOf(static_cast<unsigned char>(c)) > back ? text.size() - back
                                                          : text.size();
  }
  return text.size();
}

}  // namespace pd
