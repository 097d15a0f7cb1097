// SPDX-License-Identifier: Apache-2.0
// The trace of a profiler: name, start, end and thread of every event. The
// files that hold it are chrome_trace.h and paddle_trace.h.
#ifndef PD_FORMATS_PROFILE_TRACE_H_
#define PD_FORMATS_PROFILE_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// PaddlePaddle's kinds of events, by its numbers (TracerEventType).
enum class EventType : uint8_t {
  kOperator = 0,
  kDataloader = 1,
  kProfileStep = 2,
  kCudaRuntime = 3,
  kKernel = 4,
  kMemcpy = 5,
  kMemset = 6,
  kUserDefined = 7,
  kOperatorInner = 8,
  kForward = 9,
  kBackward = 10,
  kOptimization = 11,
  kCommunication = 12,
  kPythonOp = 13,
  kPythonUserDefined = 14,
  kMluRuntime = 15,
};
inline constexpr int kEventTypes = 16;

/// "Operator".
absl::string_view Name(EventType type);
std::optional<EventType> EventTypeFromName(absl::string_view name);

/// How a kernel was started on a GPU.
struct TraceLaunch {
  int64_t grid[3] = {}, block[3] = {};
  int64_t registers = 0;     ///< of each thread
  int64_t shared_bytes = 0;  ///< of each block
};

/// The properties that events from the same place share.
struct TraceSite {
  EventType type = EventType::kUserDefined;
  std::string name;            ///< an op's type, a range's name
  std::string output;          ///< an op's first output
  std::string implementation;  ///< the one that ran
  std::string layer;           ///< "/stage1/0/conv1/"
  /// Which step of which plan; nothing for what is no op of a plan.
  std::optional<int64_t> plan, index;
  int64_t flops = 0, bytes_read = 0, bytes_written = 0;
  /// Bytes of the plan's memory that are in use while it runs.
  int64_t alive_bytes = 0;
  /// "label: reason" of the implementations that were asked before.
  std::vector<std::string> refusals;
  std::optional<TraceLaunch> launch;  ///< of a single kernel

  bool IsOp() const {
    return type == EventType::kOperator || type == EventType::kMemcpy;
  }
};

struct TraceEvent {
  uint32_t site = 0;    ///< index in ProfileTrace::sites
  uint32_t thread = 0;  ///< index in ProfileTrace::threads
  int64_t begin_ns = 0, end_ns = 0;
  /// A number that ties events together: the step of a ProfileStep; for others
  /// that have the same (not 0), what one made and the other took.
  int64_t id = 0;

  int64_t duration() const { return end_ns - begin_ns; }
};

struct TraceThread {
  uint64_t id = 0;  ///< the system's
  std::string name;
  uint64_t lost = 0;  ///< events that the ring buffer had no room for
};

/// A value that was read now and then.
struct TraceCounter {
  std::string name;                                ///< "resident memory"
  std::string unit;                                ///< "MB"
  std::vector<std::pair<int64_t, double>> points;  ///< at a time in ns
};

/// A tensor that is in memory when a plan needs the most.
struct TraceTensor {
  std::string name;
  int64_t bytes = 0;
  std::string from, to;  ///< the ops of its first and last use
};

struct ProfileTrace {
  /// Of our own traces: what their meaning is numbered by.
  static constexpr int64_t kVersion = 1;
  std::string producer;       ///< "pdkit" or "PaddlePaddle"
  uint64_t process = 0;       ///< its number
  std::string process_name;   ///< "pd-profile lenet_mnist"
  int64_t start_unix_ns = 0;  ///< when time 0 of the events was
  int64_t first_step = 0;     ///< of the window, counted from 0
  std::vector<TraceSite> sites;
  std::vector<TraceThread> threads;
  std::vector<TraceEvent> events;  ///< by thread, then by begin, outer first
  std::vector<TraceCounter> counters;
  std::vector<TraceTensor> peak;  ///< the largest first
  int64_t peak_bytes = 0;         ///< of the plan that has these tensors
  /// Name and value: machine, versions, utilization.
  std::vector<std::pair<std::string, std::string>> facts;

  const TraceSite& SiteOf(const TraceEvent& event) const {
    return sites[event.site];
  }
  /// A fact's value; "" when there is none.
  std::string Fact(absl::string_view name) const;
  uint64_t lost() const;
};

/// Sorts the events as they have to be.
void SortEvents(ProfileTrace* trace);

/// DataLoss when an event names a site or thread that is not there, ends before
/// it begins, or lies across another one of its thread.
absl::Status CheckTrace(const ProfileTrace& trace);

/// Writes a trace in the form that the name asks for: `.pb` is PaddlePaddle's
/// protobuf, anything else Chrome's JSON; `.gz` behind it compresses.
absl::Status WriteTrace(const std::string& path, const ProfileTrace& trace);

/// Reads what WriteTrace writes, and PaddlePaddle's `.paddle_trace.pb`.
/// DataLoss when it is damaged, InvalidArgument when it is something else or of
/// a version that is not known; messages name the path.
absl::StatusOr<ProfileTrace> ReadTrace(const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_PROFILE_TRACE_H_
