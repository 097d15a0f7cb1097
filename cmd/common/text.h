// SPDX-License-Identifier: Apache-2.0
// Small pieces of output that several tools share.
#ifndef PD_CMD_COMMON_TEXT_H_
#define PD_CMD_COMMON_TEXT_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/common/standard_output.h"
#include "libcore/train/bench.h"

namespace pd {

/// The names in "a,b"; empty ones are left out.
std::vector<std::string> SplitNames(const std::string& names);

/// "12.3 MB".
std::string Megabytes(size_t bytes);

/// The JSON line of `--bench`, without a line break.
std::string BenchLine(const BenchReport& report);
/// Says with -v where the time went.
void LogTimes(const BenchReport& report);

/// A file that is written as it goes on, line by line, such as a log: no
/// temporary, since readers follow it. "-" is standard output.
class OutputFile {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// The first write's error when not everything could be written.
  absl::Status Finish() { return stream_.Finish(); }

 private:
  OutputFile(int fd, const std::string& shown);
  const int fd_;
  OutputStream stream_;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_TEXT_H_
