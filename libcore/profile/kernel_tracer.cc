// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/kernel_tracer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Above those that tie other events.
int64_t NextLink() {
  static int64_t link = int64_t{1} << 41;
  return ++link;
}

EventType TypeOf(GpuWork::Kind kind) {
  switch (kind) {
    case GpuWork::Kind::kKernel:
      return EventType::kKernel;
    case GpuWork::Kind::kMemcpy:
      return EventType::kMemcpy;
    case GpuWork::Kind::kMemset:
      return EventType::kMemset;
  }
  return EventType::kKernel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTracer>> KernelTracer::Open() {
  PD_ASSIGN_OR_RETURN(GpuRecorder * recorder, GpuRecorder::Get());
  // Whether it may record shows when it is to.
  PD_RETURN_IF_ERROR(recorder->Start(TraceClock::MonotonicNs));
  PD_RETURN_IF_ERROR(recorder->Stop().status());
  return std::unique_ptr<KernelTracer>(new KernelTracer(recorder));
}

std::string KernelTracer::LibraryText() const {
  return absl::StrCat(recorder_->library().version, " of '",
                      recorder_->library().path, "'");
}

size_t KernelTracer::AddPlan(const Plan& plan) {
  if (plan.place()->is_gpu) {
    auto device = std::static_pointer_cast<CudaDevice>(plan.place()->device);
    const int index = device->info().index;
    devices_[index] = std::move(device);
  }
  const size_t first = sources_.size();
  for (const StepInfo& info : plan.steps())
    sources_.push_back({info.output, info.layer});
  return first;
}

void KernelTracer::Note(const absl::Status& status) { status_.Update(status); }

absl::Status KernelTracer::Start() {
  ran_.clear();
  links_.clear();
  PD_RETURN_IF_ERROR(recorder_->Start(TraceClock::MonotonicNs));
  begun_ = TraceClock::Mark();
  recording_ = true;
  return absl::OkStatus();
}

void KernelTracer::Before() {
  if (recording_) Note(recorder_->BeginRange(ran_.size() + 1));
}

void KernelTracer::After(size_t step, EventRing* ring, uint64_t begin,
                         uint64_t end) {
  if (!recording_) return;
  Note(recorder_->EndRange());
  ran_.push_back({step, ring, begin, end});
}

absl::Status KernelTracer::Stop() {
  if (!std::exchange(recording_, false)) return absl::OkStatus();
  for (const auto& [index, device] : devices_) Note(device->Synchronize());
  auto activity = recorder_->Stop();
  Note(activity.status());
  PD_RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
  const TraceClock::Anchor end = TraceClock::Mark();
  ticks_per_ns_ =
      static_cast<double>(end.ticks - begun_.ticks) /
      static_cast<double>(std::max<uint64_t>(end.ns - begun_.ns, 1));
  for (const GpuWork& work : activity->work)
    if (links_.count(work.correlation) == 0)
      links_[work.correlation] = NextLink();
  PushCalls(*activity);
  PushWork(&*activity);
  if (activity->lost > 0)
    LogWarning(
        "CUPTI had no room for %d records: the trace lacks them; "
        "FLAGS_multiple_of_cupti_buffer_size gives it more",
        activity->lost);
  return absl::OkStatus();
}

uint64_t KernelTracer::Ticks(uint64_t ns) const {
  const auto since = static_cast<double>(static_cast<int64_t>(ns - begun_.ns));
  return begun_.ticks +
         static_cast<uint64_t>(static_cast<int64_t>(since * ticks_per_ns_));
}

const KernelTracer::Ran* KernelTracer::RanOf(const GpuActivity& activity,
                                             uint32_t correlation) const {
  const auto found = activity.ranges.find(correlation);
  if (found == activity.ranges.end() || found->second == 0 ||
      found->second > ran_.size())
    return nullptr;
  return &ran_[found->second - 1];
}

// Calls lie inside their step, whatever the last digits of two clocks say.
void KernelTracer::PushCalls(const GpuActivity& activity) {
  // Of a call of the runtime and the driver's inside it, the outer is tied.
  std::unordered_map<uint32_t, bool> by_runtime;
  for (const GpuCall& call : activity.calls)
    by_runtime[call.correlation] |= call.runtime;
  for (const GpuCall& call : activity.calls) {
    const Ran* ran = RanOf(activity, call.correlation);
    if (ran == nullptr) continue;
    const auto link = links_.find(call.correlation);
    const bool tied =
        link != links_.end() && call.runtime == by_runtime[call.correlation];
    const uint64_t begin = std::clamp(Ticks(call.start), ran->begin, ran->end);
    const uint64_t end = std::clamp(Ticks(call.end), begin, ran->end);
    ran->ring->Push(Recorder::Get().SiteOf(EventType::kCudaRuntime, call.name),
                    begin, end, tied ? link->second : 0);
  }
}

// Kernels of a stream that overlap stand in rows beside each other.
void KernelTracer::PushWork(GpuActivity* activity) {
  std::stable_sort(
      activity->work.begin(), activity->work.end(),
      [](const GpuWork& a, const GpuWork& b) { return a.start < b.start; });
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> ends;
  for (const GpuWork& work : activity->work) {
    std::vector<uint64_t>& lanes = ends[{work.device, work.stream}];
    size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > work.start) ++lane;
    if (lane == lanes.size()) lanes.push_back(0);
    lanes[lane] = std::max(work.start, work.end);
    const Ran* ran = RanOf(*activity, work.correlation);
    RingOf(work.device, work.stream, lane)
        ->Push(SiteOf(work, ran == nullptr ? 0 : ran->source),
               Ticks(work.start), Ticks(lanes[lane]),
               links_.at(work.correlation));
  }
}

SiteId KernelTracer::SiteOf(const GpuWork& work, size_t source) {
  const SiteKey key = {
      source,
      work.name,
      {work.grid[0], work.grid[1], work.grid[2], work.block[0], work.block[1],
       work.block[2], work.registers, work.shared_bytes, work.bytes}};
  const auto known = sites_.find(key);
  if (known != sites_.end()) return known->second;
  TraceSite site;
  site.type = TypeOf(work.kind);
  site.name = work.name;
  site.output = sources_[source].output;
  site.layer = sources_[source].layer;
  if (work.kind == GpuWork::Kind::kKernel) {
    TraceLaunch& launch = site.launch.emplace();
    std::copy(work.grid, work.grid + 3, launch.grid);
    std::copy(work.block, work.block + 3, launch.block);
    launch.registers = work.registers;
    launch.shared_bytes = work.shared_bytes;
  } else {
    site.bytes_written = work.bytes;
    if (work.kind == GpuWork::Kind::kMemcpy) site.bytes_read = work.bytes;
  }
  return sites_[key] = Recorder::Get().AddSites({std::move(site)});
}

EventRing* KernelTracer::RingOf(uint32_t device, uint32_t stream, size_t lane) {
  auto& ring = rings_[{device, stream, lane}];
  if (ring == nullptr) {
    const auto known = devices_.find(static_cast<int>(device));
    ring = Recorder::Get().MakeRing(absl::StrCat(
        "gpu:", device,
        known == devices_.end() ? ""
                                : absl::StrCat(" ", known->second->info().name),
        " stream ", stream,
        lane == 0 ? "" : absl::StrCat(" (", lane + 1, ")")));
  }
  return ring.get();
}

}  // namespace pd
