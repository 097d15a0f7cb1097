// SPDX-License-Identifier: Apache-2.0
// Tables on standard output, and names from files that may hold anything.
#ifndef PD_CMD_COMMON_TABLE_H_
#define PD_CMD_COMMON_TABLE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

/// Columns of text, the first `left` of them flush left.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(size_t left) : left_(left) {}
  void Add(Row row) { rows_.push_back(std::move(row)); }
  /// Lines that begin with two blanks and end with a line break.
  std::string ToString() const;

 private:
  size_t left_;
  std::vector<Row> rows_;
};

/// Control characters and bytes that are no UTF-8 escaped, quotes as they are.
std::string Printable(absl::string_view text);

}  // namespace pd

#endif  // PD_CMD_COMMON_TABLE_H_
