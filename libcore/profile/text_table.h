// SPDX-License-Identifier: Apache-2.0
// The tables of PaddlePaddle's profiler: columns of fixed width, left-aligned,
// two blanks apart, with lines of hyphens; a title in hyphens as wide as all.
#ifndef PD_LIBCORE_PROFILE_TEXT_TABLE_H_
#define PD_LIBCORE_PROFILE_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

class TextTable {
 public:
  /// The least widths; a column is as wide as its longest cell where `grows`.
  TextTable(std::vector<size_t> widths, std::vector<bool> grows)
      : widths_(std::move(widths)), grows_(std::move(grows)) {}

  void Header(std::vector<std::string> cells) { header_ = std::move(cells); }
  void Row(std::vector<std::string> cells);
  /// A line of hyphens with words in its middle.
  void Heading(std::string words) { rows_.push_back({std::move(words)}); }
  /// A second header, between two lines.
  void SecondHeader(std::vector<std::string> cells);

  /// Title, `unit` (may be ""), header, rows; a last line when `closed`.
  std::string Text(absl::string_view title, absl::string_view unit,
                   bool closed) const;
  /// As wide as the table without its trailing blanks.
  size_t width() const;

  /// "---words---", `width` wide.
  static std::string Title(size_t width, absl::string_view words);

 private:
  struct Line {
    std::string heading;
    std::vector<std::string> cells;
    bool separated = false;
  };
  std::string Cells(const std::vector<std::string>& cells) const;
  std::string Separator() const;

  std::vector<size_t> widths_;
  std::vector<bool> grows_;
  std::vector<std::string> header_;
  std::vector<Line> rows_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_TEXT_TABLE_H_
