// SPDX-License-Identifier: Apache-2.0
// Events of this process, written by the threads themselves into ring buffers
// of their own: no lock, no allocation, about forty nanoseconds an event. A
// buffer that is full forgets its oldest events and counts them.
#ifndef PD_LIBCORE_TRACE_RECORDER_H_
#define PD_LIBCORE_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/profile_trace.h"
#include "libcore/trace/trace_clock.h"

namespace pd {

using SiteId = uint32_t;

/// The events of one thread, which alone pushes.
class EventRing {
 public:
  EventRing(uint64_t thread, std::string name, size_t capacity);

  void Push(SiteId site, uint64_t begin, uint64_t end, int64_t id) {
    // An event that ends after recording stopped is not part of the trace.
    if (!open_.load(std::memory_order_relaxed)) return;
    const uint64_t n = count_.load(std::memory_order_relaxed);
    Slot& slot = slots_[n & mask_];
    slot.begin.store(begin, std::memory_order_relaxed);
    slot.end.store(end, std::memory_order_relaxed);
    slot.id.store(id, std::memory_order_relaxed);
    slot.site.store(site, std::memory_order_relaxed);
    count_.store(n + 1, std::memory_order_release);
  }

 private:
  friend class Recorder;
  struct Slot {
    std::atomic<uint64_t> begin{0}, end{0};
    std::atomic<int64_t> id{0};
    std::atomic<SiteId> site{0};
  };
  const uint64_t thread_;
  const std::string name_;
  const uint64_t mask_;
  std::vector<Slot> slots_;
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> open_{false};
  uint64_t first_ = 0;  // earlier events are already collected
};

class Recorder {
 public:
  static constexpr size_t kRingEvents = size_t{1} << 16;

  /// The one of this process.
  static Recorder& Get();

  /// False costs whoever asks one load.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  /// Makes the rings of this thread and, when they come, of others ready for
  /// at least `events` events each. Call it before the first Start.
  void Prepare(size_t events = kRingEvents);

  /// From now on events are kept; those from before are forgotten.
  void Start();
  /// Until now.
  void Stop();

  /// The trace recorded between Start and Stop: sites, threads, events in their
  /// order, times from Start on.
  ProfileTrace Collect();
  /// A reading of the clock as a time of that trace.
  int64_t Nanoseconds(uint64_t ticks) const {
    return TraceClock::Nanoseconds(start_, stop_, ticks);
  }

  /// New sites, which get numbers in a row; gives the first one's.
  SiteId AddSites(std::vector<TraceSite> sites);
  /// The site with this kind and name, made when it is not there.
  SiteId SiteOf(EventType type, absl::string_view name);

  /// The ring of the calling thread.
  EventRing* ThisThread();

  /// A ring for what runs elsewhere than on a thread, a GPU; one thread pushes.
  std::shared_ptr<EventRing> MakeRing(std::string name);

  /// Sets the name of the calling thread in traces.
  static void NameThisThread(std::string name);

 private:
  Recorder() = default;

  std::atomic<bool> recording_{false};
  std::mutex mutex_;
  size_t capacity_ = kRingEvents;
  uint64_t made_ = 0;  // rings that are no thread's
  std::vector<std::shared_ptr<EventRing>> rings_;
  std::vector<TraceSite> sites_;
  std::map<std::pair<EventType, std::string>, SiteId, std::less<>> by_name_;
  TraceClock::Anchor start_, stop_;
  int64_t start_unix_ns_ = 0;
};

/// A range of time with a name, from the object's beginning to its end, as
/// paddle.profiler.RecordEvent is:
///
///   {
///     pd::RecordEvent event("augmentation");
///     ...
///   }
///
/// Where nothing is recorded it costs next to nothing. Ranges of a thread lie
/// inside each other.
class RecordEvent {
 public:
  explicit RecordEvent(absl::string_view name,
                       EventType type = EventType::kUserDefined) {
    if (Recorder::Get().recording()) Begin(Recorder::Get().SiteOf(type, name));
  }
  /// Of a site that was made before, which spares a look-up.
  explicit RecordEvent(SiteId site) {
    if (Recorder::Get().recording()) Begin(site);
  }
  ~RecordEvent() { End(); }
  RecordEvent(const RecordEvent&) = delete;
  RecordEvent& operator=(const RecordEvent&) = delete;

  /// Ties this range to another with the same number, not 0.
  void set_id(int64_t id) { id_ = id; }

  /// It is being recorded.
  bool recording() const { return ring_ != nullptr; }
  /// Gives a range that is being recorded another site than it began with.
  void set_site(SiteId site) { site_ = site; }

  /// Ends the range before the object does.
  void End() {
    if (ring_ == nullptr) return;
    ring_->Push(site_, begin_, TraceClock::Now(), id_);
    ring_ = nullptr;
  }

 private:
  void Begin(SiteId site) {
    site_ = site;
    ring_ = Recorder::Get().ThisThread();
    begin_ = TraceClock::Now();
  }

  EventRing* ring_ = nullptr;
  SiteId site_ = 0;
  uint64_t begin_ = 0;
  int64_t id_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRACE_RECORDER_H_
