// SPDX-License-Identifier: Apache-2.0
// RUN's files for VisualDL and TensorBoard. They are appended to while the run
// goes on, so a viewer can follow. A run that goes on from a checkpoint cuts
// them back to its step first, so nothing is there twice.
#ifndef PD_LIBCORE_REPORT_LOG_FILES_H_
#define PD_LIBCORE_REPORT_LOG_FILES_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/log_record.h"

namespace pd {

enum class LogKind { kVisualDl, kTensorBoard };

class LogFile {
 public:
  /// Goes on in RUN's newest file of this kind behind its records up to `step`;
  /// begins a new one where there is none. At step 0 older files are removed:
  /// they are of a run that left no checkpoint. DataLoss names a damaged file.
  static absl::StatusOr<std::unique_ptr<LogFile>> Open(LogKind kind,
                                                       const std::string& run,
                                                       int64_t step);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Appends a record of now. What the file has no place for, and what it holds
  /// already from before it was opened, is left out.
  absl::Status Add(std::string tag, int64_t step, LogContent content);
  /// Everything so far is in the file.
  absl::Status Flush();
  const std::string& path() const { return path_; }

 private:
  LogFile() = default;
  absl::Status CutBack(int64_t step);

  LogKind kind_ = LogKind::kVisualDl;
  std::string path_;
  std::FILE* file_ = nullptr;
  std::set<std::pair<std::string, int64_t>> held_;  // tag, step
};

/// Seconds since 1970.
double WallSeconds();

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_LOG_FILES_H_
