// SPDX-License-Identifier: Apache-2.0
// CSV and TSV files: RFC 4180 quoting or none, LF or CRLF, a header or none.
// Strict: every row has as many fields as the first, and errors carry line and
// column.
#ifndef PD_FORMATS_CSV_H_
#define PD_FORMATS_CSV_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"

namespace pd {

struct CsvOptions {
  bool header = true;
  char delimiter = ',';
  bool quoting = true;  ///< else a quote is a character like others
};

/// A CSV file whose first row has been read.
struct CsvFile {
  std::string path;
  FileBytes file;
  CsvOptions options;
  std::vector<std::string> names;  ///< of the header; empty without one
  size_t columns = 0;
  size_t body = 0;        ///< where the first row behind the header begins
  int64_t body_line = 1;  ///< its line
};

/// Opens the file ("-": standard input), inflates it where it is gzip, and
/// reads its first row. DataLoss when it is empty.
absl::StatusOr<CsvFile> OpenCsvFile(const std::string& path,
                                    const CsvOptions& options);

/// The same for bytes that are there already; `path` is for messages.
absl::StatusOr<CsvFile> ParseCsvHead(const std::string& path, FileBytes bytes,
                                     const CsvOptions& options);

/// A field of a row. The text lies in the file, or in the reader until the next
/// row.
struct CsvCell {
  absl::string_view text;
  int64_t line = 0, column = 0;  ///< where it begins, from 1
  bool quoted = false;
};

/// Walks over the rows behind the header.
class CsvReader {
 public:
  /// `csv` outlives it.
  explicit CsvReader(const CsvFile& csv);

  /// The next row, csv.columns cells; false at the end. DataLoss with
  /// "'path':line:column: ..." on a row that is too short or too long and on
  /// broken quoting: the next row is then the line behind the one on which this
  /// row began.
  absl::StatusOr<bool> Next(std::vector<CsvCell>* cells);

  /// An error of a cell with its place in front.
  absl::Status At(const CsvCell& cell, const absl::Status& status) const;

 private:
  absl::Status Row(std::vector<CsvCell>* cells);
  absl::Status Field(CsvCell* cell, bool* last);
  absl::Status Quoted(CsvCell* cell);
  void Newline();
  friend absl::StatusOr<CsvFile> ParseCsvHead(const std::string& path,
                                              FileBytes bytes,
                                              const CsvOptions& options);

  const CsvFile& csv_;
  absl::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int64_t line_ = 1;
  size_t row_begin_ = 0;
  int64_t row_line_ = 1;
  size_t used_ = 0;                  // of buffers_
  std::deque<std::string> buffers_;  // unescaped fields of this row
};

}  // namespace pd

#endif  // PD_FORMATS_CSV_H_
