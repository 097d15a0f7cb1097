// SPDX-License-Identifier: Apache-2.0
// Input of the readers of text files: files or standard input, inflated where
// they are gzip; lines; numbers.
#ifndef PD_FORMATS_TEXT_INPUT_H_
#define PD_FORMATS_TEXT_INPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"

namespace pd {

/// ReadFileGunzip; "-" is standard input, which comes once: FailedPrecondition
/// when this process has read it before.
absl::StatusOr<FileBytes> ReadInput(const std::string& path);

/// The lines of a text, without their LF or CRLF.
class LineReader {
 public:
  /// `text` outlives it and begins with line `first`. A byte order mark at its
  /// beginning is passed over.
  explicit LineReader(absl::string_view text, int64_t first = 1);
  /// False at the end; an LF at the very end begins no further line.
  bool Next(absl::string_view* line);
  /// Of the line given last, from 1.
  int64_t number() const { return number_; }

 private:
  absl::string_view rest_;
  int64_t number_ = 0;
};

/// The whole text, but for blanks around it, as a number. DataLoss "'4x' is not
/// a number", and so on.
absl::StatusOr<double> ParseNumber(absl::string_view text,
                                   bool allow_nan = false);

/// In quotes, control characters escaped, cut when it is long.
std::string ShownText(absl::string_view text);

/// Without blanks and tabs around it.
absl::string_view TrimBlanks(absl::string_view text);

}  // namespace pd

#endif  // PD_FORMATS_TEXT_INPUT_H_
