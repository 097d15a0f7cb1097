// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/driver_tracer.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/api/paddle_trace_event.h"

namespace pd {
namespace {

// A driver that adds without end does not take all memory.
constexpr size_t kMostTold = size_t{1} << 22;
// Above the numbers that tie other events.
constexpr int64_t kFirstTie = int64_t{1} << 42;

uint64_t UnixNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// A handle comes back from a driver: only that of a living tracer is followed.
struct LivingTracers {
  std::mutex mutex;
  std::set<DriverTracer*> all;
};
LivingTracers& Living() {
  static auto* const living = new LivingTracers;
  return *living;
}

EventType TypeOfWork(phi::TracerEventType type) {
  switch (type) {
    case phi::TracerEventType::Memcpy:
      return EventType::kMemcpy;
    case phi::TracerEventType::Memset:
      return EventType::kMemset;
    case phi::TracerEventType::Communication:
      return EventType::kCommunication;
    default:
      return EventType::kKernel;
  }
}

TraceLaunch LaunchOf(const phi::KernelEventInfo& info) {
  TraceLaunch launch;
  launch.grid[0] = info.grid_x;
  launch.grid[1] = info.grid_y;
  launch.grid[2] = info.grid_z;
  launch.block[0] = info.block_x;
  launch.block[1] = info.block_y;
  launch.block[2] = info.block_z;
  launch.registers = info.registers_per_thread;
  launch.shared_bytes = static_cast<int64_t>(info.static_shared_memory) +
                        info.dynamic_shared_memory;
  return launch;
}

DriverTracer::Told ToldOf(const std::string& type,
                          const phi::DeviceTraceEvent& event) {
  DriverTracer::Told told;
  told.row =
      absl::StrCat(type, ":", event.device_id, " stream ", event.stream_id);
  told.site.type = TypeOfWork(event.type);
  told.site.name = event.name;
  if (told.site.type == EventType::kKernel) {
    told.site.launch = LaunchOf(event.kernel_info);
  } else if (told.site.type != EventType::kCommunication) {
    // Both details begin with their number of bytes.
    told.site.bytes_written = static_cast<int64_t>(event.memcpy_info.num_bytes);
    if (told.site.type == EventType::kMemcpy)
      told.site.bytes_read = told.site.bytes_written;
  }
  told.begin = event.start_ns;
  told.end = event.end_ns;
  told.correlation = event.correlation_id;
  told.work = true;
  return told;
}

DriverTracer::Told ToldOf(const std::string& type,
                          const phi::RuntimeTraceEvent& event) {
  DriverTracer::Told told;
  told.row = absl::StrCat(type, " calls of thread ", event.thread_id);
  told.site.type = EventType::kCudaRuntime;
  told.site.name = event.name;
  told.begin = event.start_ns;
  told.end = event.end_ns;
  told.correlation = event.correlation_id;
  return told;
}

template <typename Event>
void AddEvent(C_Profiler profiler, const void* event) {
  LivingTracers& living = Living();
  const std::lock_guard<std::mutex> lock(living.mutex);
  auto* const tracer = reinterpret_cast<DriverTracer*>(profiler);
  if (event == nullptr || living.all.count(tracer) == 0) {
    LogWarning("an event of a driver's profiler %s is left out",
               event == nullptr ? "that is null" : "that is not running");
    return;
  }
  tracer->Add(ToldOf(tracer->type(), *static_cast<const Event*>(event)));
}

// Drops a row and its events.
void DropRow(const std::string& name, ProfileTrace* trace) {
  auto& events = trace->events;
  events.erase(std::remove_if(events.begin(), events.end(),
                              [&](const TraceEvent& event) {
                                return trace->threads[event.thread].name ==
                                       name;
                              }),
               events.end());
}

// Events of a row that overlap stand in rows beside each other.
class Rows {
 public:
  explicit Rows(ProfileTrace* trace) : trace_(trace) {}
  uint32_t Find(const std::string& row, uint64_t begin, uint64_t end) {
    std::vector<Lane>& lanes = rows_[row];
    for (Lane& lane : lanes)
      if (lane.end <= begin) {
        lane.end = end;
        return lane.thread;
      }
    TraceThread thread;
    thread.id = kFirstRow + trace_->threads.size();
    thread.name =
        lanes.empty() ? row : absl::StrCat(row, " (", lanes.size() + 1, ")");
    trace_->threads.push_back(std::move(thread));
    lanes.push_back({static_cast<uint32_t>(trace_->threads.size() - 1), end});
    return lanes.back().thread;
  }

 private:
  // No thread of the system has such a number.
  static constexpr uint64_t kFirstRow = uint64_t{1} << 33;
  struct Lane {
    uint32_t thread;
    uint64_t end;
  };
  ProfileTrace* trace_;
  std::map<std::string, std::vector<Lane>> rows_;
};

}  // namespace

template <typename F, typename... Args>
absl::Status DriverTracer::CallIfThere(const char* name, F function,
                                       Args... args) {
  return function == nullptr ? absl::OkStatus()
                             : device_->driver().Call(name, function, args...);
}

absl::StatusOr<std::unique_ptr<DriverTracer>> DriverTracer::Open(
    std::shared_ptr<PluginDevice> device) {
  const C_DeviceInterface& table = device->driver().table;
  if (table.profiler_collect_trace_data == nullptr) {
    if (table.profiler_start_tracing != nullptr)
      LogWarning(
          "%s: its table has 'profiler_start_tracing' but lacks "
          "'profiler_collect_trace_data': the trace has steps only",
          device->driver().part.Describe());
    return nullptr;
  }
  std::unique_ptr<DriverTracer> tracer(new DriverTracer(std::move(device)));
  {
    const std::lock_guard<std::mutex> lock(Living().mutex);
    Living().all.insert(tracer.get());
  }
  PD_RETURN_IF_ERROR(
      tracer->CallIfThere("profiler_initialize", table.profiler_initialize,
                          tracer->handle(), &tracer->user_data_));
  tracer->initialized_ = true;
  return tracer;
}

DriverTracer::~DriverTracer() {
  const C_DeviceInterface& table = device_->driver().table;
  absl::Status status;
  if (recording_)
    status.Update(CallIfThere("profiler_stop_tracing",
                              table.profiler_stop_tracing, handle(),
                              user_data_));
  if (initialized_)
    status.Update(CallIfThere("profiler_finalize", table.profiler_finalize,
                              handle(), user_data_));
  if (!status.ok()) LogWarning("%s", std::string(status.message()));
  const std::lock_guard<std::mutex> lock(Living().mutex);
  Living().all.erase(this);
}

absl::Status DriverTracer::Start() {
  const C_DeviceInterface& table = device_->driver().table;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    told_.clear();
    lost_ = 0;
  }
  PD_RETURN_IF_ERROR(device_->Enter());
  PD_RETURN_IF_ERROR(CallIfThere("profiler_prepare_tracing",
                                 table.profiler_prepare_tracing, handle(),
                                 user_data_));
  start_ns_ = UnixNs();
  PD_RETURN_IF_ERROR(CallIfThere("profiler_start_tracing",
                                 table.profiler_start_tracing, handle(),
                                 user_data_));
  recording_ = true;
  return absl::OkStatus();
}

absl::Status DriverTracer::Stop() {
  if (!std::exchange(recording_, false)) return absl::OkStatus();
  const C_DeviceInterface& table = device_->driver().table;
  PD_RETURN_IF_ERROR(device_->Synchronize());
  PD_RETURN_IF_ERROR(CallIfThere("profiler_stop_tracing",
                                 table.profiler_stop_tracing, handle(),
                                 user_data_));
  stop_ns_ = UnixNs();
  return device_->driver().Call("profiler_collect_trace_data",
                                table.profiler_collect_trace_data, handle(),
                                start_ns_, user_data_);
}

void DriverTracer::Add(Told told) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (told_.size() < kMostTold)
    told_.push_back(std::move(told));
  else
    ++lost_;
}

void DriverTracer::AddTo(ProfileTrace* trace) {
  std::vector<Told> told;
  size_t lost = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    told.swap(told_);
    lost = std::exchange(lost_, 0);
  }
  const auto start =
      std::max(start_ns_, static_cast<uint64_t>(trace->start_unix_ns));
  const auto outside =
      std::remove_if(told.begin(), told.end(), [&](const Told& one) {
        return one.begin < start || one.end < one.begin || one.end > stop_ns_;
      });
  const auto left_out = told.end() - outside;
  told.erase(outside, told.end());
  if (left_out > 0)
    LogWarning(
        "%s: %d events of its profiler end before they begin or lie outside of "
        "the window, in nanoseconds of the Unix clock, and are left out",
        device_->driver().part.Describe(), left_out);
  if (lost > 0)
    LogWarning("%s: its profiler tells more than %d events; %d are left out",
               device_->driver().part.Describe(), kMostTold, lost);
  if (std::any_of(told.begin(), told.end(),
                  [](const Told& one) { return one.work; }))
    DropRow(device_->title(), trace);
  std::stable_sort(told.begin(), told.end(), [](const Told& a, const Told& b) {
    return a.begin < b.begin;
  });
  Rows rows(trace);
  for (Told& one : told) {
    TraceEvent event;
    event.thread = rows.Find(one.row, one.begin, one.end);
    event.site = static_cast<uint32_t>(trace->sites.size());
    trace->sites.push_back(std::move(one.site));
    event.begin_ns = static_cast<int64_t>(one.begin) - trace->start_unix_ns;
    event.end_ns = static_cast<int64_t>(one.end) - trace->start_unix_ns;
    event.id = one.correlation == 0 ? 0 : kFirstTie + one.correlation;
    trace->events.push_back(event);
  }
  SortEvents(trace);
}

}  // namespace pd

extern "C" void profiler_add_runtime_trace_event(C_Profiler prof, void* event) {
  pd::AddEvent<phi::RuntimeTraceEvent>(prof, event);
}
extern "C" void profiler_add_device_trace_event(C_Profiler prof, void* event) {
  pd::AddEvent<phi::DeviceTraceEvent>(prof, event);
}
