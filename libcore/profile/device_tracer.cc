// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/device_tracer.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Above those of batches, which tie their events in the same way.
int64_t NextNumber() {
  static int64_t number = int64_t{1} << 40;
  return ++number;
}

// One row of a trace for each device.
std::shared_ptr<EventRing> RingOf(const Device& device) {
  static auto* const kRings =
      new std::map<std::string, std::shared_ptr<EventRing>>;
  auto& ring = (*kRings)[device.name()];
  if (ring == nullptr) ring = Recorder::Get().MakeRing(device.title());
  return ring;
}

TraceSite SiteOf(const StepInfo& info) {
  TraceSite site;
  const bool copy = info.op_type == "copy";
  site.type = copy ? EventType::kMemcpy : EventType::kKernel;
  site.name = info.op_type;
  site.output = info.output;
  site.implementation = copy ? "memcpy" : info.implementation;
  site.layer = info.layer;
  site.flops = info.flops;
  site.bytes_read = info.bytes_read;
  site.bytes_written = info.bytes_written;
  return site;
}

}  // namespace

DeviceTracer::DeviceTracer(const Plan& plan)
    : device_(plan.place()->device), ring_(RingOf(*device_)) {
  const auto mark = [this](std::unique_ptr<DeviceMark>* to) {
    auto made = device_->MakeMark();
    Note(made.status());
    if (made.ok()) *to = *std::move(made);
  };
  mark(&begin_);
  for (const StepInfo& info : plan.steps()) {
    steps_.emplace_back();
    if (!info.on_device) continue;
    steps_.back() = std::make_unique<Traced>();
    steps_.back()->site = Recorder::Get().AddSites({SiteOf(info)});
    for (auto& one : steps_.back()->marks) mark(&one);
    order_.push_back(steps_.back().get());
  }
}

void DeviceTracer::Note(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void DeviceTracer::BeginRun() {
  if (!status_.ok()) return;
  Note(device_->Synchronize());
  Note(device_->Put(*begin_));
  begun_ = TraceClock::Mark();
}

void DeviceTracer::Put(size_t step, int which) {
  Traced* traced = steps_[step].get();
  if (traced == nullptr || !status_.ok()) return;
  Note(device_->Put(*traced->marks[which]));
}

int64_t DeviceTracer::After(size_t step) {
  Put(step, 1);
  Traced* traced = steps_[step].get();
  return traced == nullptr ? 0 : traced->number = NextNumber();
}

absl::Status DeviceTracer::EndRun() {
  PD_RETURN_IF_ERROR(status_);
  PD_RETURN_IF_ERROR(device_->Synchronize());
  const TraceClock::Anchor end = TraceClock::Mark();
  const double ticks_per_second =
      static_cast<double>(end.ticks - begun_.ticks) * 1e9 /
      static_cast<double>(std::max<uint64_t>(end.ns - begun_.ns, 1));
  // Each from the mark before it: a long time has few digits.
  const DeviceMark* last = begin_.get();
  double seconds = 0;
  const auto at = [&](const DeviceMark& mark) -> absl::StatusOr<uint64_t> {
    PD_ASSIGN_OR_RETURN(const double more,
                        device_->SecondsBetween(*last, mark));
    seconds += std::max(more, 0.0);
    last = &mark;
    return begun_.ticks + static_cast<uint64_t>(seconds * ticks_per_second);
  };
  for (const Traced* traced : order_) {
    PD_ASSIGN_OR_RETURN(const uint64_t from, at(*traced->marks[0]));
    PD_ASSIGN_OR_RETURN(const uint64_t to, at(*traced->marks[1]));
    ring_->Push(traced->site, from, to, traced->number);
  }
  return absl::OkStatus();
}

}  // namespace pd
