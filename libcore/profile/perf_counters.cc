// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/perf_counters.h"

#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

int OpenOn(int thread, perf_event_attr* attr) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::vector<int> ThreadsOfProcess() {
  std::vector<int> threads;
  std::error_code error;
  std::filesystem::directory_iterator it("/proc/self/task", error), end;
  for (; !error && it != end; it.increment(error)) {
    int thread = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &thread))
      threads.push_back(thread);
  }
  return threads;
}

std::string WhyNot(int error) {
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
    return "this machine has no such counter (virtual machines often have "
           "none)";
  if (error == EACCES || error == EPERM)
    return "not permitted: see /proc/sys/kernel/perf_event_paranoid";
  return std::strerror(error);
}

}  // namespace

const std::vector<std::string>& PerfCounters::Usual() {
  static const auto* names = new std::vector<std::string>{
      "PERF_COUNT_HW_CPU_CYCLES",    "PERF_COUNT_HW_INSTRUCTIONS",
      "PERF_COUNT_HW_CACHE_MISSES",  "PERF_COUNT_HW_BRANCH_MISSES",
      "PERF_COUNT_SW_PAGE_FAULTS",   "PERF_COUNT_SW_CONTEXT_SWITCHES",
      "PERF_COUNT_SW_CPU_MIGRATIONS"};
  return *names;
}

absl::Status PerfCounters::Open(const std::vector<std::string>& names) {
  const int ready = pfm_initialize();
  if (ready != PFM_SUCCESS)
    return Internal("libpfm4 does not start: %s", pfm_strerror(ready));
  for (const std::string& name : names) {
    perf_event_attr attr;
    std::memset(&attr, 0, sizeof(attr));
    pfm_perf_encode_arg_t arg;
    std::memset(&arg, 0, sizeof(arg));
    arg.attr = &attr;
    arg.size = sizeof(arg);
    const int found = pfm_get_os_event_encoding(name.c_str(), PFM_PLM3,
                                                PFM_OS_PERF_EVENT, &arg);
    if (found != PFM_SUCCESS)
      return NotFound("no counter '%s' on this processor (libpfm4: %s)", name,
                      pfm_strerror(found));
    Counter counter;
    counter.name = name;
    counter.type = attr.type;
    counter.config = attr.config;
    counters_.push_back(std::move(counter));
  }
  return absl::OkStatus();
}

PerfCounters::~PerfCounters() {
  for (Counter& counter : counters_)
    for (const int file : counter.files) close(file);
}

void PerfCounters::Start() {
  const std::vector<int> threads = ThreadsOfProcess();
  for (Counter& counter : counters_) {
    counter.unavailable.clear();
    for (const int thread : threads) {
      perf_event_attr attr;
      std::memset(&attr, 0, sizeof(attr));
      attr.size = sizeof(attr);
      attr.type = counter.type;
      attr.config = counter.config;
      attr.inherit = 1;
      attr.exclude_kernel = counter.type != PERF_TYPE_SOFTWARE;
      attr.exclude_hv = 1;
      attr.read_format =
          PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
      int file = OpenOn(thread, &attr);
      if (file < 0 && attr.exclude_kernel == 0 && errno == EACCES) {
        attr.exclude_kernel = 1;  // user space needs no privileges
        file = OpenOn(thread, &attr);
      }
      if (file >= 0)
        counter.files.push_back(file);
      else if (errno != ESRCH)  // the thread has ended meanwhile
        counter.unavailable = WhyNot(errno);
    }
  }
}

std::vector<PerfCounters::Value> PerfCounters::Stop() {
  std::vector<Value> values;
  for (Counter& counter : counters_) {
    Value value{counter.name, 0, counter.unavailable};
    for (const int file : counter.files) {
      uint64_t read_out[3] = {0, 0, 0};  // count, time enabled, time running
      if (read(file, read_out, sizeof(read_out)) ==
              static_cast<ssize_t>(sizeof(read_out)) &&
          read_out[2] > 0)
        value.count += static_cast<double>(read_out[0]) *
                       static_cast<double>(read_out[1]) /
                       static_cast<double>(read_out[2]);
      close(file);
    }
    counter.files.clear();
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace pd
