// SPDX-License-Identifier: Apache-2.0
// A profile as JSON for scripts, and as a page for people: timeline, layers,
// roofline and memory in one file that needs no network.
#ifndef PD_LIBCORE_REPORT_PROFILE_REPORT_H_
#define PD_LIBCORE_REPORT_PROFILE_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "formats/profile_trace.h"
#include "libcore/profile/compare_traces.h"
#include "libcore/profile/perf_summary.h"
#include "libcore/profile/summary.h"

namespace pd {

/// One JSON object with the numbers of every table; times in the unit that
/// their names end in.
std::string ProfileJson(const ProfileTrace& trace,
                        const ProfileSummary& summary);
/// The object of a Perf Summary alone.
std::string PerfJson(const PerfSummary& perf);
std::string ComparisonJson(const TraceComparison& comparison);

/// Writes the page.
absl::Status WriteProfileReport(const std::string& path,
                                const ProfileTrace& trace,
                                const ProfileSummary& summary);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_PROFILE_REPORT_H_
