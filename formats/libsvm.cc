// SPDX-License-Identifier: Apache-2.0
#include "formats/libsvm.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// "INDEX:VALUE"
absl::Status ParsePair(absl::string_view pair, LibSvmRow* row) {
  const char* const end = pair.data() + pair.size();
  int64_t index = 0;
  const auto [colon, error] = std::from_chars(pair.data(), end, index);
  if (error != std::errc() || colon == end || *colon != ':' || index < 0)
    return DataLoss("%s is no INDEX:VALUE", ShownText(pair));
  if (!row->indices.empty() && index <= row->indices.back())
    return DataLoss("index %d stands behind %d; expected ascending indices",
                    index, row->indices.back());
  const absl::string_view text =
      pair.substr(static_cast<size_t>(colon + 1 - pair.data()));
  const auto value = ParseNumber(text);
  if (!value.ok()) return value.status();
  if (std::fabs(*value) > std::numeric_limits<float>::max())
    return DataLoss("%s is outside the range of a float32", ShownText(text));
  row->indices.push_back(index);
  row->values.push_back(static_cast<float>(*value));
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseLibSvm(absl::string_view line, LibSvmRow* row,
                         bool* row_found) {
  const absl::string_view text = line.substr(0, line.find('#'));
  row->indices.clear();
  row->values.clear();
  *row_found = false;
  size_t at = 0;
  for (;;) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    if (at == text.size()) return absl::OkStatus();
    const size_t begin = at;
    while (at < text.size() && text[at] != ' ' && text[at] != '\t') ++at;
    const absl::string_view word = text.substr(begin, at - begin);
    absl::Status status;
    if (!*row_found) {
      const auto label = ParseNumber(word);
      status = label.status();
      row->label = label.value_or(0);
      *row_found = true;
    } else if (word.substr(0, 4) != "qid:" || !row->indices.empty()) {
      status = ParsePair(word, row);
    }
    if (!status.ok())
      return Annotate(status, absl::StrFormat("column %d", begin + 1));
  }
}

}  // namespace pd
