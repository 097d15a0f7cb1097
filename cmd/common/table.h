// SPDX-License-Identifier: Apache-2.0
// Tables on standard output. Their cells may come from files.
#ifndef PD_CMD_COMMON_TABLE_H_
#define PD_CMD_COMMON_TABLE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/printable.h"

namespace pd {

/// Columns of text, the first `left` of them flush left.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(size_t left) : left_(left) {}
  /// Adds a row; control characters in a cell are escaped.
  void Add(Row row);
  /// Lines that begin with two blanks and end with a line break.
  std::string ToString() const;

 private:
  size_t left_;
  std::vector<Row> rows_;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_TABLE_H_
