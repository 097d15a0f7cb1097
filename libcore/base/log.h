// SPDX-License-Identifier: Apache-2.0
// The log: lines on stderr, results never. `-q` lowers the level, `-v` raises
// it. A progress bar on the terminal is cleared before a line is written.
#ifndef PD_LIBCORE_BASE_LOG_H_
#define PD_LIBCORE_BASE_LOG_H_

#include <functional>
#include "absl/strings/string_view.h"

#include "absl/strings/str_format.h"

namespace pd {

enum class LogLevel {
  kError = 0,
  kWarning = 1,
  kInfo = 2,
  kVerbose = 3,
  kDebug = 4
};

/// Lines above this level are dropped. kInfo at start.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();

/// Writes one line, with "warning: " or "error: " before it at those levels.
void LogLine(LogLevel level, absl::string_view line);

/// Called before a line is written, for example to clear a progress bar.
void SetBeforeLogLine(std::function<void()> hook);

#define PD_DEFINE_LOG(Kind)                                         \
  template <typename... Args>                                       \
  void Log##Kind(const absl::FormatSpec<Args...>& format,           \
                 const Args&... args) {                             \
    if (GetLogLevel() >= LogLevel::k##Kind)                         \
      LogLine(LogLevel::k##Kind, absl::StrFormat(format, args...)); \
  }
PD_DEFINE_LOG(Error)
PD_DEFINE_LOG(Warning)
PD_DEFINE_LOG(Info)
PD_DEFINE_LOG(Verbose)
PD_DEFINE_LOG(Debug)
#undef PD_DEFINE_LOG

}  // namespace pd

#endif  // PD_LIBCORE_BASE_LOG_H_
