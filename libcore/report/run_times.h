// SPDX-License-Identifier: Apache-2.0
// RUN/times.jsonl: how fast a run went and what memory it took. These numbers
// are apart from log.jsonl, which holds nothing that a second run would not
// give again.
#ifndef PD_LIBCORE_REPORT_RUN_TIMES_H_
#define PD_LIBCORE_REPORT_RUN_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

struct TimePoint {
  int64_t step = 0;
  double seconds = 0;  ///< of training so far, in all processes of the run
  double records_per_second = 0;  ///< since the point before
  double rss_mb = 0;              ///< memory in use
  double peak_rss_mb = 0;         ///< the most of this process so far
};

/// The points of RUN/times.jsonl up to `step`; none when there is no such file.
/// DataLoss names a line that is none of ours; a torn last line is left out.
absl::StatusOr<std::vector<TimePoint>> ReadTimes(const std::string& run,
                                                 int64_t step);

std::string TimeLine(const TimePoint& point);

/// The memory that this process has in use, in megabytes.
double RssMegabytes();

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_RUN_TIMES_H_
