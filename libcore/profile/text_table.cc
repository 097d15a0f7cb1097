// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

constexpr size_t kGap = 2;

}  // namespace

void TextTable::Row(std::vector<std::string> cells) {
  for (size_t i = 0; i < cells.size() && i < widths_.size(); ++i)
    if (grows_[i]) widths_[i] = std::max(widths_[i], cells[i].size());
  rows_.push_back({"", std::move(cells), false});
}

void TextTable::SecondHeader(std::vector<std::string> cells) {
  rows_.push_back({"", std::move(cells), true});
}

size_t TextTable::width() const {
  size_t width = 0;
  for (const size_t column : widths_) width += column + kGap;
  return width - kGap;
}

std::string TextTable::Title(size_t width, absl::string_view words) {
  const size_t left = width > words.size() ? width - words.size() : 0;
  return absl::StrCat(std::string(left / 2, '-'), words,
                      std::string(left - left / 2, '-'), "\n");
}

std::string TextTable::Cells(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < widths_.size(); ++i) {
    const std::string cell = i < cells.size() ? cells[i] : "";
    const size_t pad = widths_[i] > cell.size() ? widths_[i] - cell.size() : 0;
    absl::StrAppend(&line, cell, std::string(pad + kGap, ' '));
  }
  return line + "\n";
}

std::string TextTable::Separator() const {
  std::string line;
  for (const size_t width : widths_)
    absl::StrAppend(&line, std::string(width, '-'), std::string(kGap, ' '));
  return line + "\n";
}

std::string TextTable::Text(absl::string_view title, absl::string_view unit,
                            bool closed) const {
  std::string text = Title(width(), title);
  if (!unit.empty()) absl::StrAppend(&text, "Time unit: ", unit, "\n");
  absl::StrAppend(&text, Separator(), Cells(header_), Separator());
  for (const Line& line : rows_) {
    if (!line.heading.empty()) {
      text += Title(width(), line.heading);
    } else if (line.separated) {
      absl::StrAppend(&text, Separator(), Cells(line.cells), Separator());
    } else {
      text += Cells(line.cells);
    }
  }
  if (closed) text += Separator();
  return text;
}

}  // namespace pd
