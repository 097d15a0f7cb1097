// SPDX-License-Identifier: Apache-2.0
#include "formats/text_input.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"

namespace pd {

absl::StatusOr<FileBytes> ReadInput(const std::string& path) {
  return ReadFileGunzip(path);
}

LineReader::LineReader(absl::string_view text, int64_t first)
    : rest_(text), number_(first - 1) {
  if (rest_.substr(0, 3) == "\xEF\xBB\xBF") rest_.remove_prefix(3);
}

bool LineReader::Next(absl::string_view* line) {
  if (rest_.empty()) return false;
  const void* found = std::memchr(rest_.data(), '\n', rest_.size());
  const size_t end =
      found == nullptr
          ? rest_.size()
          : static_cast<size_t>(static_cast<const char*>(found) - rest_.data());
  *line = rest_.substr(0, end);
  rest_.remove_prefix(found == nullptr ? end : end + 1);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  ++number_;
  return true;
}

absl::StatusOr<double> ParseNumber(absl::string_view text, bool allow_nan) {
  absl::string_view digits = TrimBlanks(text);
  if (digits.empty()) return DataLoss("the field is empty; expected a number");
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-')
    digits.remove_prefix(1);  // from_chars takes no plus sign
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::result_out_of_range)
    return DataLoss("%s is outside the range of a double", ShownText(text));
  if (error != std::errc() || stop != end)
    return DataLoss("%s is not a number", ShownText(text));
  if (!std::isfinite(value) && !allow_nan)
    return DataLoss("%s is not a finite number", ShownText(text));
  return value;
}

std::string ShownText(absl::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...'" : "'");
}

absl::string_view TrimBlanks(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

}  // namespace pd
