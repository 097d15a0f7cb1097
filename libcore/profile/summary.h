// SPDX-License-Identifier: Apache-2.0
// The sums of a trace's events: the numbers of PaddlePaddle's tables
// and of ours, all of the same window: the steps that were recorded.
#ifndef PD_LIBCORE_PROFILE_SUMMARY_H_
#define PD_LIBCORE_PROFILE_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/profile_trace.h"
#include "libcore/profile/distribution.h"

namespace pd {

/// Times of one kind of event, in ns.
struct TimeItem {
  std::string name;
  int64_t calls = 0;
  int64_t total = 0, max = 0;
  int64_t min = std::numeric_limits<int64_t>::max();
  /// Of the work that the calls started on a GPU; 0 calls: there was none.
  struct Gpu {
    int64_t calls = 0, total = 0, max = 0, min = 0;
    void Add(int64_t ns);
    double average() const {
      return calls > 0 ? static_cast<double>(total) / static_cast<double>(calls)
                       : 0;
    }
  } gpu;
  int64_t flops = 0, bytes = 0;  ///< of all calls
  std::vector<TimeItem> inner;   ///< parts, in the order of their coming

  void Add(int64_t ns);
  /// The part of this name, made when it is not there.
  TimeItem* Inner(const std::string& name);
  double average() const {
    return calls > 0 ? static_cast<double>(total) / static_cast<double>(calls)
                     : 0;
  }
};

/// Items of one thread, or of all.
struct ThreadItems {
  std::string thread;
  std::vector<TimeItem> items;
};

/// All events of a kind; where they overlap, time counts once.
struct KindTime {
  EventType type = EventType::kOperator;
  int64_t calls = 0, total = 0;
  bool on_gpu = false;
};

/// The parts of the steps' time, on the thread that steps.
struct Coverage {
  int64_t steps = 0;    ///< their time
  int64_t reading = 0;  ///< waiting for data
  int64_t ops = 0;      ///< operators
  int64_t moves = 0;    ///< reorders and copies between them
  int64_t waiting = 0;  ///< for other processes
  /// The time that none of these covers.
  int64_t rest() const { return steps - reading - ops - moves - waiting; }
};

struct ProfileSummary {
  int64_t steps = 0;            ///< that were recorded
  int64_t step_time = 0;        ///< of all of them
  std::vector<KindTime> kinds;  ///< the most time first
  std::vector<TimeItem> model;  ///< ProfileStep, Dataloader, Forward, ...
  int64_t communication = 0, communication_calls = 0;
  std::vector<Distribution> ranks;     ///< of each process
  ThreadItems operators;               ///< threads merged
  std::vector<ThreadItems> by_thread;  ///< the same, each for itself
  std::vector<TimeItem> kernels;       ///< implementations, of our traces
  std::vector<TimeItem> memory;        ///< reorders, copies
  ThreadItems user;
  std::vector<ThreadItems> user_by_thread;
  Coverage coverage;
  /// Name of an op's site ("conv2d -> conv1.tmp_0") -> its time in each step.
  std::map<std::string, std::vector<double>> op_samples;
  std::vector<double> step_samples;     ///< time of each step
  std::vector<double> reading_samples;  ///< of it, waiting for data
};

/// The trace is one that CheckTrace takes. Of a trace of several processes all
/// but `ranks` is rank 0's.
ProfileSummary Summarize(const ProfileTrace& trace);

/// PaddlePaddle's SortedKeys.
enum class SortKey {
  kCpuTotal,
  kCpuAvg,
  kCpuMax,
  kCpuMin,
  kGpuTotal,
  kGpuAvg,
  kGpuMax,
  kGpuMin
};
/// "CPUTotal", ... in the order of the numbers.
const std::vector<std::string>& SortKeyNames();

/// Sorts as PaddlePaddle does: the largest first, by the minimum the smallest;
/// what is equal, as it came.
void SortItems(SortKey key, std::vector<TimeItem>* items);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_SUMMARY_H_
