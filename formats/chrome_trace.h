// SPDX-License-Identifier: Apache-2.0
// The Trace Event Format of Chrome ("JSON Object Format"), which
// chrome://tracing, Perfetto and speedscope open. What viewers do not know is
// under the key "pdkit"; the reader takes everything from there and from the
// complete events.
#ifndef PD_FORMATS_CHROME_TRACE_H_
#define PD_FORMATS_CHROME_TRACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile_trace.h"

namespace pd {

/// The file's text: complete events (ph X), names and order of process and
/// threads (M), flows between events with the same id (s, f), counters (C) and
/// a mark at the beginning of each step (i). Times are microseconds with three
/// decimals.
std::string ChromeTraceText(const ProfileTrace& trace);

/// InvalidArgument when it is JSON of somebody else or of another version.
absl::StatusOr<ProfileTrace> ParseChromeTrace(absl::string_view text);

}  // namespace pd

#endif  // PD_FORMATS_CHROME_TRACE_H_
