// SPDX-License-Identifier: Apache-2.0
#include "formats/profile_trace.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "formats/chrome_trace.h"
#include "formats/gzip.h"
#include "formats/paddle_trace.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr absl::string_view kNames[kEventTypes] = {
    "Operator",      "Dataloader",  "ProfileStep",
    "CudaRuntime",   "Kernel",      "Memcpy",
    "Memset",        "UserDefined", "OperatorInner",
    "Forward",       "Backward",    "Optimization",
    "Communication", "PythonOp",    "PythonUserDefined",
    "MluRuntime"};

// Events of one thread in their order; one that holds another comes first.
bool Before(const TraceEvent& a, const TraceEvent& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
  return a.end_ns > b.end_ns;
}

}  // namespace

absl::string_view Name(EventType type) {
  return kNames[static_cast<size_t>(type)];
}

std::optional<EventType> EventTypeFromName(absl::string_view name) {
  for (int i = 0; i < kEventTypes; ++i)
    if (kNames[i] == name) return static_cast<EventType>(i);
  return std::nullopt;
}

std::string ProfileTrace::Fact(absl::string_view name) const {
  for (const auto& [key, value] : facts)
    if (key == name) return value;
  return "";
}

uint64_t ProfileTrace::lost() const {
  uint64_t lost = 0;
  for (const TraceThread& thread : threads) lost += thread.lost;
  return lost;
}

void SortEvents(ProfileTrace* trace) {
  std::stable_sort(trace->events.begin(), trace->events.end(), Before);
}

absl::Status CheckTrace(const ProfileTrace& trace) {
  std::vector<const TraceEvent*> open;  // of this thread, around each other
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.site >= trace.sites.size() ||
        event.thread >= trace.threads.size())
      return DataLoss(
          "event %d is of site %d and thread %d; there are %d and %d", i,
          event.site, event.thread, trace.sites.size(), trace.threads.size());
    // Far enough from the ends of the numbers that differences are safe.
    constexpr int64_t kMost = int64_t{1} << 61;
    if (event.begin_ns < -kMost || event.end_ns > kMost ||
        event.end_ns < event.begin_ns)
      return DataLoss("event %d lasts from %d to %d", i, event.begin_ns,
                      event.end_ns);
    if (i > 0 && Before(event, trace.events[i - 1]))
      return DataLoss("event %d stands behind a later one", i);
    if (!open.empty() && open.front()->thread != event.thread) open.clear();
    while (!open.empty() && open.back()->end_ns <= event.begin_ns &&
           open.back()->end_ns < event.end_ns)
      open.pop_back();
    if (!open.empty() && open.back()->end_ns < event.end_ns)
      return DataLoss("event %d lies across another one of thread '%s'", i,
                      trace.threads[event.thread].name);
    open.push_back(&event);
  }
  return absl::OkStatus();
}

absl::Status WriteTrace(const std::string& path, const ProfileTrace& trace) {
  absl::string_view name = path;
  const bool zip = absl::ConsumeSuffix(&name, ".gz");
  const std::string bytes = absl::EndsWith(name, ".pb")
                                ? PaddleTraceBytes(trace)
                                : ChromeTraceText(trace);
  if (!zip) return WriteFile(path, bytes);
  PD_ASSIGN_OR_RETURN(const std::string zipped, Gzip(bytes));
  return WriteFile(path, zipped);
}

absl::StatusOr<ProfileTrace> ReadTrace(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFileGunzip(path));
  const absl::string_view bytes = file.view();
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json = first != absl::string_view::npos && bytes[first] == '{';
  auto trace = json ? ParseChromeTrace(bytes) : ParsePaddleTrace(bytes);
  if (!trace.ok())
    return Annotate(trace.status(), absl::StrCat("'", path, "'"));
  return trace;
}

}  // namespace pd
