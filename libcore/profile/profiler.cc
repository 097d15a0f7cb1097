// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/profiler.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {

Profiler::Profiler(ProfilerOptions options) : options_(std::move(options)) {}

ProfilerState Profiler::State() const {
  return options_.scheduler.has_value() ? options_.scheduler->StateOf(step_)
                                        : ProfilerState::kClosed;
}

absl::Status Profiler::Start() {
  PD_RETURN_IF_ERROR(meter_.OpenCounters(options_.counters));
  constexpr size_t kSteps = 1 << 12;
  costs_.reserve(kSteps);
  if (options_.scheduler.has_value()) {
    samples_.reserve(kSteps);
    Recorder::NameThisThread("main");
    Recorder::Get().Prepare(options_.ring_events);
    step_site_ = Recorder::Get().SiteOf(EventType::kProfileStep, "ProfileStep");
  }
  start_ = TraceClock::Mark();
  BeginStep();
  return absl::OkStatus();
}

void Profiler::BeginStep() {
  const ProfilerState state = State();
  if (!open_ && (state == ProfilerState::kRecord ||
                 state == ProfilerState::kRecordAndReturn))
    OpenWindow();
  read_ = 0;
  begin_ = TraceClock::Now();
}

void Profiler::OpenWindow() {
  open_ = true;
  window_first_ = step_;
  samples_.clear();
  meter_.Start();
  Recorder::Get().Start();
  StartDevices();
  SampleCounters();
}

void Profiler::StartDevices() {
  if (kernels_ != nullptr) kernels_status_.Update(kernels_->Start());
  if (driver_ != nullptr) kernels_status_.Update(driver_->Start());
}

void Profiler::StopDevices() {
  if (kernels_ != nullptr) kernels_status_.Update(kernels_->Stop());
  if (driver_ != nullptr) kernels_status_.Update(driver_->Stop());
}

void Profiler::SampleCounters() {
  samples_.push_back({TraceClock::Now(), WindowMeter::ProcessSeconds(),
                      meter_.ResidentMegabytes()});
}

absl::Status Profiler::Step(int64_t records) {
  const uint64_t end = TraceClock::Now();
  const ProfilerState state = State();
  costs_.push_back({read_, end - begin_, records, open_});
  if (open_) {
    Recorder::Get().ThisThread()->Push(step_site_, begin_, end, step_);
    ++recorded_;
    SampleCounters();
  }
  ++step_;
  if (state == ProfilerState::kRecordAndReturn)
    PD_RETURN_IF_ERROR(CloseWindow());
  BeginStep();
  return absl::OkStatus();
}

absl::Status Profiler::Finish() {
  if (!open_) return absl::OkStatus();
  // A window in which no step has come to its end shows nothing.
  if (step_ > window_first_) return CloseWindow();
  open_ = false;
  StopDevices();
  Recorder::Get().Stop();
  meter_.Stop();
  return kernels_status_;
}

StepHook* Profiler::HookFor(const Plan& plan) {
  if (!open_ && State() != ProfilerState::kReady) return nullptr;
  if (plan.place() != nullptr && !std::exchange(asked_kernels_, true)) {
    if (plan.place()->is_gpu)
      OpenKernels();
    else
      OpenDriver(plan);
  }
  std::unique_ptr<PlanTracer>& tracer = tracers_[&plan];
  if (tracer == nullptr)
    tracer = std::make_unique<PlanTracer>(plan, plans_++, kernels_.get());
  return tracer.get();
}

void Profiler::OpenKernels() {
  auto opened = KernelTracer::Open();
  if (!opened.ok()) {
    LogInfo("the GPU's time is shown by operators, not by kernels: %s",
            std::string(opened.status().message()));
    options_.facts.emplace_back(
        "CUPTI", absl::StrCat("unavailable: ", opened.status().message()));
    return;
  }
  kernels_ = *std::move(opened);
  options_.facts.emplace_back("CUPTI", kernels_->LibraryText());
  if (open_) kernels_status_.Update(kernels_->Start());
}

// A device that is no GPU is a plug-in's.
void Profiler::OpenDriver(const Plan& plan) {
  auto opened = DriverTracer::Open(
      std::static_pointer_cast<PluginDevice>(plan.place()->device));
  kernels_status_.Update(opened.status());
  if (!opened.ok()) return;
  driver_ = *std::move(opened);
  if (open_ && driver_ != nullptr) kernels_status_.Update(driver_->Start());
}

absl::Status Profiler::CloseWindow() {
  open_ = false;
  StopDevices();
  Recorder::Get().Stop();
  auto measured = meter_.Stop();
  PD_RETURN_IF_ERROR(kernels_status_);
  if (options_.on_trace_ready == nullptr) return absl::OkStatus();
  ProfileTrace trace = Recorder::Get().Collect();
  if (driver_ != nullptr) driver_->AddTo(&trace);
  trace.process_name = options_.process_name;
  trace.first_step = window_first_;
  trace.facts = options_.facts;
  if (trace.Fact("threads").empty())
    trace.facts.emplace_back("threads", absl::StrCat(Threads()));
  trace.facts.emplace_back("cpus",
                           absl::StrCat(std::thread::hardware_concurrency()));
  int64_t records = 0;
  for (size_t i = static_cast<size_t>(window_first_); i < costs_.size(); ++i)
    records += costs_[i].records;
  trace.facts.emplace_back("records", absl::StrCat(records));
  for (auto& fact : measured) trace.facts.push_back(std::move(fact));
  TraceCounter resident{"resident memory", "MB", {}},
      cores{"cores busy", "cores", {}};
  for (size_t i = 1; i < samples_.size(); ++i) {
    const Sample &before = samples_[i - 1], &now = samples_[i];
    const int64_t from = Recorder::Get().Nanoseconds(before.ticks);
    const int64_t to = Recorder::Get().Nanoseconds(now.ticks);
    resident.points.emplace_back(to, now.resident_mb);
    if (to > from)
      cores.points.emplace_back(from, (now.process_s - before.process_s) * 1e9 /
                                          static_cast<double>(to - from));
  }
  trace.counters = {std::move(resident), std::move(cores)};
  AddPeak(&trace);
  return options_.on_trace_ready(std::move(trace));
}

// Of the plan that needs the most memory.
void Profiler::AddPeak(ProfileTrace* trace) const {
  constexpr size_t kMostTensors = 100;
  for (const auto& [plan, tracer] : tracers_) {
    if (tracer->peak_bytes() <= trace->peak_bytes) continue;
    trace->peak_bytes = tracer->peak_bytes();
    trace->peak = tracer->peak();
    if (trace->peak.size() > kMostTensors) trace->peak.resize(kMostTensors);
  }
}

std::vector<StepCost> Profiler::Costs() const {
  const TraceClock::Anchor now = TraceClock::Mark();
  const auto seconds = [&](uint64_t ticks) {
    return static_cast<double>(
               TraceClock::Nanoseconds(start_, now, start_.ticks + ticks)) *
           1e-9;
  };
  std::vector<StepCost> out;
  out.reserve(costs_.size());
  for (const Cost& cost : costs_)
    out.push_back({seconds(cost.reader), seconds(cost.batch), cost.records,
                   cost.recorded});
  return out;
}

}  // namespace pd
