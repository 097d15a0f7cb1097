// SPDX-License-Identifier: Apache-2.0
// Measurements of the machine while a window of steps was recorded: use of the
// cores, memory, counters, energy.
#ifndef PD_LIBCORE_PROFILE_WINDOW_METER_H_
#define PD_LIBCORE_PROFILE_WINDOW_METER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/profile/perf_counters.h"

namespace pd {

class WindowMeter {
 public:
  WindowMeter();
  ~WindowMeter();
  WindowMeter(const WindowMeter&) = delete;
  WindowMeter& operator=(const WindowMeter&) = delete;

  /// Which counters are read; see PerfCounters::Open.
  absl::Status OpenCounters(const std::vector<std::string>& names) {
    return counters_.Open(names);
  }

  void Start();
  /// Name and value of what was measured since Start: "Process Cpu
  /// Utilization" and "System Cpu Utilization" as PaddlePaddle's, "counter
  /// NAME", "energy package-0 (J)", ...
  std::vector<std::pair<std::string, std::string>> Stop();

  /// CPU time of this process so far, all threads, in seconds.
  static double ProcessSeconds();
  /// Resident memory of this process now, in MB.
  double ResidentMegabytes() const;

 private:
  struct Energy {
    std::string name, file;
    double begin = 0, range = 0;  // microjoules
  };
  struct SystemTimes {
    double busy = 0, idle = 0;
  };
  static SystemTimes ReadSystemTimes();
  void FindEnergy();

  PerfCounters counters_;
  std::vector<Energy> energies_;
  std::string no_energy_;  // why there is none
  int statm_ = -1;
  double wall_ = 0, process_ = 0;
  SystemTimes system_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_WINDOW_METER_H_
