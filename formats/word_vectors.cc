// SPDX-License-Identifier: Apache-2.0
#include "formats/word_vectors.h"

#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Takes the last word between blanks away from `line`; empty at its beginning.
absl::string_view TakeLast(absl::string_view* line) {
  size_t end = line->size();
  while (end > 0 && IsBlank((*line)[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && !IsBlank((*line)[begin - 1])) --begin;
  const absl::string_view word = line->substr(begin, end - begin);
  *line = line->substr(0, begin);
  return word;
}

struct Header {
  int64_t words = 0, size = 0;
};

// The counts of a first line that holds nothing else.
std::optional<Header> HeaderOf(absl::string_view line) {
  Header header;
  const absl::string_view size = TakeLast(&line), words = TakeLast(&line);
  if (words.empty() || !TakeLast(&line).empty() ||
      !absl::SimpleAtoi(size, &header.size) ||
      !absl::SimpleAtoi(words, &header.words) || header.words < 0 ||
      header.size < 1)
    return std::nullopt;
  return header;
}

absl::Status AtLine(const absl::Status& status, int64_t line) {
  return status.ok() ? status : Annotate(status, absl::StrCat("line ", line));
}

// The numbers of a line, the last first; what is left of `line` is the word.
absl::Status ParseRow(absl::string_view* line, int64_t size, float* out) {
  for (int64_t i = size - 1; i >= 0; --i) {
    const absl::string_view text = TakeLast(line);
    PD_ASSIGN_OR_RETURN(const double value, ParseNumber(text));
    if (std::fabs(value) > std::numeric_limits<float>::max())
      return DataLoss("%s is outside the range of a float32", ShownText(text));
    out[i] = static_cast<float>(value);
  }
  return absl::OkStatus();
}

absl::string_view WithoutBlanksBehind(absl::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// A line without its last `size` words.
absl::StatusOr<absl::string_view> WordOf(absl::string_view line, int64_t size) {
  for (int64_t found = 0; found < size; ++found)
    if (TakeLast(&line).empty())
      return DataLoss("%d words between blanks; expected a word and %d numbers",
                      found, size);
  const absl::string_view word = WithoutBlanksBehind(line);
  if (word.empty())
    return DataLoss("%d words between blanks; expected a word and %d numbers",
                    size, size);
  return word;
}

}  // namespace

absl::StatusOr<int64_t> WordVectorSize(absl::string_view text) {
  LineReader lines(text);
  absl::string_view line;
  if (!lines.Next(&line)) return DataLoss("the file is empty");
  if (const auto header = HeaderOf(line)) return header->size;
  int64_t words = 0;
  absl::string_view last = line;
  const absl::string_view number = TakeLast(&last);
  PD_RETURN_IF_ERROR(AtLine(ParseNumber(number).status(), 1));
  while (!TakeLast(&line).empty()) ++words;
  if (words < 2) return DataLoss("line 1: a word without numbers");
  return words - 1;
}

absl::StatusOr<int64_t> ReadWordVectors(
    absl::string_view text, int64_t size,
    absl::FunctionRef<float*(absl::string_view)> place) {
  LineReader lines(text);
  absl::string_view line;
  std::optional<Header> header;
  int64_t words = 0;
  while (lines.Next(&line)) {
    if (lines.number() == 1 && (header = HeaderOf(line)).has_value()) continue;
    if (WithoutBlanksBehind(line).empty()) continue;
    const auto word = WordOf(line, size);
    if (!word.ok()) return AtLine(word.status(), lines.number());
    ++words;
    float* const out = place(*word);
    if (out == nullptr) continue;
    PD_RETURN_IF_ERROR(AtLine(ParseRow(&line, size, out), lines.number()));
  }
  if (header.has_value() && words < header->words)
    return DataLoss("the file ends after %d of %d words", words, header->words);
  return words;
}

}  // namespace pd
