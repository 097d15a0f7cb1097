// SPDX-License-Identifier: Apache-2.0
// Watches a loop of steps as paddle.profiler.Profiler does:
//
//   profiler.Start();
//   for (...) {
//     profiler.BeginReading();
//     ... get the batch ...
//     profiler.EndReading();
//     plan->Run(context, profiler.HookFor(*plan));
//     profiler.Step(records);
//   }
//   profiler.Finish();
//
// The scheduler says which steps are recorded. Where a step is not, nothing but
// three readings of the clock are added to it.
#ifndef PD_LIBCORE_PROFILE_PROFILER_H_
#define PD_LIBCORE_PROFILE_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/plan.h"
#include "libcore/plugin/driver_tracer.h"
#include "libcore/profile/kernel_tracer.h"
#include "libcore/profile/perf_summary.h"
#include "libcore/profile/plan_tracer.h"
#include "libcore/profile/scheduler.h"
#include "libcore/profile/window_meter.h"
#include "libcore/trace/recorder.h"

namespace pd {

struct ProfilerOptions {
  std::optional<Scheduler> scheduler;  ///< nothing: costs of steps only
  size_t ring_events = Recorder::kRingEvents;
  std::vector<std::string> counters;  ///< see PerfCounters::Open
  std::string process_name;           ///< of this process in traces
  /// Facts that every trace carries.
  std::vector<std::pair<std::string, std::string>> facts;
  /// Takes the trace of each cycle of the scheduler.
  std::function<absl::Status(ProfileTrace trace)> on_trace_ready;
};

class Profiler {
 public:
  explicit Profiler(ProfilerOptions options);

  /// NotFound for counters that nobody knows. Step 0 begins.
  absl::Status Start();
  /// The step waits for its batch between these two.
  void BeginReading() { reading_ = TraceClock::Now(); }
  void EndReading() { read_ += TraceClock::Now() - reading_; }
  /// The step has ended, with so many records; the next one begins. Gives what
  /// on_trace_ready gives.
  absl::Status Step(int64_t records);
  /// The loop has ended; what was recorded of a cycle that did not come to its
  /// end is a trace too.
  absl::Status Finish();

  /// For the plan that the step at hand runs; null when it is not recorded.
  StepHook* HookFor(const Plan& plan);
  /// A new plan may stand where another one was.
  void Forget(const Plan& plan) { tracers_.erase(&plan); }

  /// Steps done.
  int64_t steps() const { return step_; }
  /// Steps that were recorded.
  int64_t recorded() const { return recorded_; }
  /// Costs of all steps.
  std::vector<StepCost> Costs() const;

 private:
  struct Cost {
    uint64_t reader, batch;
    int64_t records;
    bool recorded;
  };
  ProfilerState State() const;
  void BeginStep();
  void OpenWindow();
  absl::Status CloseWindow();
  void OpenKernels();
  void OpenDriver(const Plan& plan);
  void StartDevices();
  void StopDevices();
  void SampleCounters();
  void AddPeak(ProfileTrace* trace) const;

  ProfilerOptions options_;
  WindowMeter meter_;
  bool asked_kernels_ = false;
  std::unique_ptr<KernelTracer> kernels_;  // null without a GPU or CUPTI
  std::unique_ptr<DriverTracer> driver_;   // null without a driver's profiler
  absl::Status kernels_status_;
  std::map<const Plan*, std::unique_ptr<PlanTracer>> tracers_;
  int64_t plans_ = 0;
  TraceClock::Anchor start_;
  bool open_ = false;  // a window is being recorded
  int64_t step_ = 0, recorded_ = 0, window_first_ = 0;
  uint64_t begin_ = 0, reading_ = 0, read_ = 0;
  SiteId step_site_ = 0;
  std::vector<Cost> costs_;
  // At the end of each step of the window.
  struct Sample {
    uint64_t ticks;
    double process_s, resident_mb;
  };
  std::vector<Sample> samples_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_PROFILER_H_
