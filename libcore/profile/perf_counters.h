// SPDX-License-Identifier: Apache-2.0
// Counters of the processor and the kernel for all threads of this process, by
// Linux perf events; libpfm4 knows what a processor calls them.
#ifndef PD_LIBCORE_PROFILE_PERF_COUNTERS_H_
#define PD_LIBCORE_PROFILE_PERF_COUNTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pd {

class PerfCounters {
 public:
  /// Counters by the names of libpfm4 ("PERF_COUNT_HW_INSTRUCTIONS",
  /// "LLC_MISSES", "FP_ARITH:256B_PACKED_SINGLE"). NotFound names those that it
  /// does not know; what this machine or its kernel does not allow is
  /// unavailable() afterwards.
  absl::Status Open(const std::vector<std::string>& names);
  PerfCounters() = default;
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  /// The counters of a usual processor and of the kernel.
  static const std::vector<std::string>& Usual();

  struct Value {
    std::string name;
    double count = 0;  ///< scaled up where the counter was not always running
    std::string unavailable;  ///< why there is none; "" when there is
  };

  /// Opens the counters on every thread there is now (threads made later
  /// belong to them) and lets them run.
  void Start();
  /// Stops them and closes them.
  std::vector<Value> Stop();

 private:
  struct Counter {
    std::string name;
    uint32_t type = 0;
    uint64_t config = 0;
    std::string unavailable;
    std::vector<int> files;  // one a thread
  };
  std::vector<Counter> counters_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_PERF_COUNTERS_H_
