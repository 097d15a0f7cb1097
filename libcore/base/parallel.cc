// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/parallel.h"

#include <sched.h>

#include <cmath>
#include <fstream>
#include <string>

namespace pd {
namespace {

int g_threads = 0;

// Cores that cgroup v2 or v1 grants, or 0 when there is no limit.
int CgroupCpus() {
  std::string quota;
  double period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> quota >> period && quota != "max" && period > 0)
    return static_cast<int>(std::ceil(std::atof(quota.c_str()) / period));
  double quota_us = 0, period_us = 0;
  std::ifstream quota_v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_v1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota_v1 >> quota_us && period_v1 >> period_us && quota_us > 0 &&
      period_us > 0)
    return static_cast<int>(std::ceil(quota_us / period_us));
  return 0;
}

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
  const int granted = CgroupCpus();
  if (granted > 0) cpus = std::min(cpus, granted);
  return std::max(cpus, 1);
}

void SetThreads(int threads) {
  g_threads = threads > 0 ? threads : AvailableCpus();
  omp_set_num_threads(g_threads);
  omp_set_dynamic(0);
}

int Threads() {
  if (g_threads == 0) SetThreads(0);
  return g_threads;
}

}  // namespace pd
