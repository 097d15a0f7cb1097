// SPDX-License-Identifier: Apache-2.0
// Numbers in CSV files: RFC 4180 quoting, LF or CRLF, a header or none.
// Strict: every row has as many fields as the first, a number is a number from
// its first to its last character, and errors carry line and column.
#ifndef PD_FORMATS_CSV_H_
#define PD_FORMATS_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"

namespace pd {

struct CsvOptions {
  bool header = true;
  char delimiter = ',';
  bool allow_nan = false;  ///< NaN and infinities are refused otherwise
};

/// A CSV file whose first row has been read.
struct CsvFile {
  std::string path;
  FileBytes file;
  CsvOptions options;
  std::vector<std::string> names;  ///< of the header; empty without one
  size_t columns = 0;
  size_t body = 0;  ///< where the first row of numbers begins
};

/// Numbers of some columns, row by row.
struct CsvNumbers {
  int64_t rows = 0;
  std::vector<double> values;  ///< [rows, columns asked for]
  std::vector<int64_t> lines;  ///< the line on which each row begins, from 1
};

/// Opens the file and reads its first row. DataLoss when it is empty.
absl::StatusOr<CsvFile> OpenCsvFile(const std::string& path,
                                    const CsvOptions& options);

/// Reads every row; fields of other columns may hold any text. DataLoss with
/// "'path':line:column: ..." on a field that is no number, a row that is too
/// short or too long, or broken quoting.
absl::StatusOr<CsvNumbers> ReadCsvNumbers(const CsvFile& csv,
                                          const std::vector<size_t>& columns);

}  // namespace pd

#endif  // PD_FORMATS_CSV_H_
