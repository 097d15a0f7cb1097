// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/plan_tracer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

EventType PhaseOf(int32_t role) {
  if ((role & (kRoleOptimize | kRoleLRSched)) != 0)
    return EventType::kOptimization;
  return (role & kRoleBackward) != 0 ? EventType::kBackward
                                     : EventType::kForward;
}

// Steps that only move values count as memory manipulation; a copy to or from
// a GPU is a CUDA runtime call.
EventType TypeOf(const StepInfo& info) {
  if (info.op_type == "copy" && info.on_device) return EventType::kCudaRuntime;
  return info.op_type == "reorder" || info.op_type == "copy"
             ? EventType::kMemcpy
             : EventType::kOperator;
}

// Bytes of the arena that are in use in each step.
std::vector<int64_t> AliveBytes(const Plan& plan) {
  std::vector<int64_t> alive(plan.steps().size() + 2, 0);
  for (const PlannedBuffer& buffer : plan.buffers()) {
    alive[static_cast<size_t>(buffer.first)] +=
        static_cast<int64_t>(buffer.bytes);
    alive[std::min(static_cast<size_t>(buffer.last) + 1, alive.size() - 1)] -=
        static_cast<int64_t>(buffer.bytes);
  }
  for (size_t i = 1; i < alive.size(); ++i) alive[i] += alive[i - 1];
  alive.resize(plan.steps().size());
  return alive;
}

}  // namespace

PlanTracer::PlanTracer(const Plan& plan, int64_t number,
                       KernelTracer* kernels) {
  Recorder& recorder = Recorder::Get();
  const std::vector<int64_t> alive = AliveBytes(plan);
  // Sites of one plan follow each other, whatever other threads add.
  std::vector<TraceSite> sites;
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const StepInfo& info = plan.steps()[i];
    TraceSite site;
    site.type = TypeOf(info);
    site.name = info.op_type;
    site.output = info.output;
    site.implementation = info.implementation;
    site.layer = info.layer;
    site.plan = number;
    site.index = static_cast<int64_t>(i);
    if (!info.on_device) {
      site.flops = info.flops;
      site.bytes_read = info.bytes_read;
      site.bytes_written = info.bytes_written;
    }
    site.alive_bytes = alive[i];
    site.refusals = info.refusals;
    sites.push_back(std::move(site));
    const EventType phase = PhaseOf(info.role);
    phases_.push_back(recorder.SiteOf(phase, Name(phase)));
  }
  first_ = recorder.AddSites(std::move(sites));
  if (plan.place() != nullptr && kernels != nullptr) {
    kernels_ = kernels;
    first_source_ = kernels->AddPlan(plan);
  } else if (plan.place() != nullptr) {
    device_ = std::make_unique<DeviceTracer>(plan);
  }
  FindPeak(plan, alive);
}

void PlanTracer::FindPeak(const Plan& plan, const std::vector<int64_t>& alive) {
  if (alive.empty()) return;
  const auto top = std::max_element(alive.begin(), alive.end());
  const int at = static_cast<int>(top - alive.begin());
  peak_bytes_ = *top;
  const auto describe = [&](int step) {
    const StepInfo& info =
        plan.steps()[std::min(static_cast<size_t>(step), alive.size() - 1)];
    return absl::StrCat(info.op_type, info.output.empty() ? "" : " -> ",
                        info.output);
  };
  for (const PlannedBuffer& buffer : plan.buffers()) {
    if (buffer.first > at || buffer.last < at) continue;
    peak_.push_back({buffer.name.empty() ? "(scratch)" : buffer.name,
                     static_cast<int64_t>(buffer.bytes), describe(buffer.first),
                     describe(buffer.last)});
  }
  std::stable_sort(peak_.begin(), peak_.end(),
                   [](const TraceTensor& a, const TraceTensor& b) {
                     return a.bytes > b.bytes;
                   });
}

}  // namespace pd
