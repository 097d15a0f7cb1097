// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/log_marks.h"
#include "libcore/base/printable.h"

namespace pd {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogLevel> g_unmarked{LogLevel::kDebug};
std::mutex g_mutex;
std::function<void()>& Hook() {
  static auto* hook = new std::function<void()>;
  return *hook;
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }
LogLevel GetLogLevel() { return g_level; }

void MarkLogLinesAbove(LogLevel shown) { g_unmarked = shown; }
absl::string_view LogMark(LogLevel level) {
  return level > g_unmarked ? absl::string_view(&kFiledOnly, 1) : "";
}

void SetBeforeLogLine(std::function<void()> hook) {
  std::lock_guard<std::mutex> lock(g_mutex);
  Hook() = std::move(hook);
}

void LogLine(LogLevel level, absl::string_view line) {
  if (level > g_level) return;
  absl::string_view prefix;
  if (level == LogLevel::kError) prefix = "error: ";
  if (level == LogLevel::kWarning) prefix = "warning: ";
  const absl::string_view mark = LogMark(level);
  std::string text = absl::StrCat(mark, prefix, PrintableLines(line), "\n");
  for (size_t at = 0;
       !mark.empty() && (at = text.find('\n', at)) + 1 < text.size();)
    text.insert(++at, mark.data(), mark.size());
  std::lock_guard<std::mutex> lock(g_mutex);
  if (Hook()) Hook()();
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace pd
