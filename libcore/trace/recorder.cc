// SPDX-License-Identifier: Apache-2.0
#include "libcore/trace/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

// The name of the calling thread, and its ring once it has one.
struct ThisThreadState {
  std::string name;
  std::shared_ptr<EventRing> ring;
};

ThisThreadState& State() {
  static thread_local ThisThreadState state;
  return state;
}

size_t PowerOfTwo(size_t n) {
  size_t power = 64;
  while (power < n) power *= 2;
  return power;
}

void KeepUsedSites(ProfileTrace* trace) {
  constexpr uint32_t kUnused = UINT32_MAX;
  std::vector<uint32_t> numbers(trace->sites.size(), kUnused);
  for (const TraceEvent& event : trace->events) numbers[event.site] = 0;
  uint32_t next = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == kUnused) continue;
    numbers[i] = next;
    if (next != i) trace->sites[next] = std::move(trace->sites[i]);
    ++next;
  }
  trace->sites.resize(next);
  for (TraceEvent& event : trace->events) event.site = numbers[event.site];
}

}  // namespace

EventRing::EventRing(uint64_t thread, std::string name, size_t capacity)
    : thread_(thread),
      name_(std::move(name)),
      mask_(PowerOfTwo(capacity) - 1),
      slots_(PowerOfTwo(capacity)) {}

Recorder& Recorder::Get() {
  // Never destroyed: threads may record until the process ends.
  static Recorder* recorder = new Recorder;
  return *recorder;
}

void Recorder::NameThisThread(std::string name) {
  State().name = std::move(name);
}

EventRing* Recorder::ThisThread() {
  ThisThreadState& state = State();
  if (state.ring != nullptr) return state.ring.get();
  const auto id = static_cast<uint64_t>(syscall(SYS_gettid));
  if (state.name.empty())
    state.name = id == static_cast<uint64_t>(getpid())
                     ? "main"
                     : absl::StrCat("thread ", id);
  std::lock_guard<std::mutex> lock(mutex_);
  state.ring = std::make_shared<EventRing>(id, state.name, capacity_);
  state.ring->open_.store(recording(), std::memory_order_relaxed);
  rings_.push_back(state.ring);
  return state.ring.get();
}

std::shared_ptr<EventRing> Recorder::MakeRing(std::string name) {
  // Above the numbers that Linux gives to threads.
  constexpr uint64_t kFirst = uint64_t{1} << 22;
  std::lock_guard<std::mutex> lock(mutex_);
  auto ring =
      std::make_shared<EventRing>(kFirst + made_++, std::move(name), capacity_);
  ring->open_.store(recording(), std::memory_order_relaxed);
  rings_.push_back(ring);
  return ring;
}

void Recorder::Prepare(size_t events) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    capacity_ = events;
  }
  ThisThread();
}

void Recorder::Start() {
  std::lock_guard<std::mutex> lock(mutex_);
  // Rings of threads that have ended since are no longer needed.
  rings_.erase(std::remove_if(rings_.begin(), rings_.end(),
                              [](const auto& r) { return r.use_count() == 1; }),
               rings_.end());
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  start_unix_ns_ = static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
  start_ = TraceClock::Mark();
  for (const auto& ring : rings_) {
    ring->first_ = ring->count_.load(std::memory_order_acquire);
    ring->open_.store(true, std::memory_order_relaxed);
  }
  recording_.store(true, std::memory_order_relaxed);
}

void Recorder::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  recording_.store(false, std::memory_order_relaxed);
  for (const auto& ring : rings_)
    ring->open_.store(false, std::memory_order_relaxed);
  stop_ = TraceClock::Mark();
}

ProfileTrace Recorder::Collect() {
  std::lock_guard<std::mutex> lock(mutex_);
  ProfileTrace trace;
  trace.producer = "pdkit";
  trace.process = static_cast<uint64_t>(getpid());
  trace.start_unix_ns = start_unix_ns_;
  trace.sites = sites_;
  for (const auto& ring : rings_) {
    const uint64_t end = ring->count_.load(std::memory_order_acquire);
    const uint64_t room = ring->mask_ + 1;
    // The slot behind the last one may be written at this moment.
    const uint64_t oldest = end + 1 > room ? end + 1 - room : 0;
    const uint64_t begin = std::max(ring->first_, oldest);
    if (end == ring->first_) continue;
    const auto thread = static_cast<uint32_t>(trace.threads.size());
    trace.threads.push_back({ring->thread_, ring->name_, begin - ring->first_});
    for (uint64_t n = begin; n < end; ++n) {
      const EventRing::Slot& slot = ring->slots_[n & ring->mask_];
      TraceEvent event;
      event.site = slot.site.load(std::memory_order_relaxed);
      event.thread = thread;
      event.begin_ns = TraceClock::Nanoseconds(
          start_, stop_, slot.begin.load(std::memory_order_relaxed));
      event.end_ns = TraceClock::Nanoseconds(
          start_, stop_, slot.end.load(std::memory_order_relaxed));
      event.id = slot.id.load(std::memory_order_relaxed);
      // A range may have been open since another recording.
      if (event.begin_ns >= 0) trace.events.push_back(event);
    }
  }
  KeepUsedSites(&trace);
  SortEvents(&trace);
  return trace;
}

SiteId Recorder::AddSites(std::vector<TraceSite> sites) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto first = static_cast<SiteId>(sites_.size());
  std::move(sites.begin(), sites.end(), std::back_inserter(sites_));
  return first;
}

SiteId Recorder::SiteOf(EventType type, absl::string_view name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto key = std::make_pair(type, std::string(name));
  const auto found = by_name_.find(key);
  if (found != by_name_.end()) return found->second;
  TraceSite site;
  site.type = type;
  site.name = key.second;
  sites_.push_back(std::move(site));
  const auto id = static_cast<SiteId>(sites_.size() - 1);
  by_name_.emplace(key, id);
  return id;
}

}  // namespace pd
