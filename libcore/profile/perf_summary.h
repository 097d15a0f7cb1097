// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's "Perf Summary": what a step costs, and how much of that is
// waiting for data. PaddlePaddle divides sums of one set of steps by the count
// of another, so its averages lie outside of its extremes; here average,
// maximum and minimum are of the same steps.
#ifndef PD_LIBCORE_PROFILE_PERF_SUMMARY_H_
#define PD_LIBCORE_PROFILE_PERF_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "formats/profile_trace.h"
#include "libcore/profile/summary.h"

namespace pd {

/// The time of one step, in seconds.
struct StepCost {
  double reader = 0;  ///< of it, waiting for the batch
  double batch = 0;   ///< the whole of it
  int64_t records = 0;
  bool recorded = false;  ///< its events were
};

struct PerfRow {
  double average = 0, max = 0, min = 0, median = 0;
};

struct PerfSummary {
  int64_t steps = 0;     ///< that count
  int64_t left_out = 0;  ///< before them
  PerfRow reader, batch, ips;
  double reader_ratio = 0;  ///< reader / batch
  double samples_per_s = 0;
};

/// Over the steps from `first` on. ips is steps a second: its average is steps
/// by their time.
PerfSummary SummarizePerf(const std::vector<StepCost>& steps, size_t first);

/// The steps of a trace, which are all alike.
PerfSummary PerfOfTrace(const ProfileTrace& trace,
                        const ProfileSummary& summary);

/// Steps at the beginning that are no measure of what follows: ten, as
/// PaddlePaddle has it, or half where there are fewer than twenty.
size_t WarmUpSteps(size_t steps);

/// The table; "" without steps. `reader`: whether there is anything to wait
/// for.
std::string PerfText(const PerfSummary& summary, bool reader);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_PERF_SUMMARY_H_
