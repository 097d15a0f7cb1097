// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/summary.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pd {
namespace {

using Range = std::pair<int64_t, int64_t>;

TimeItem* Find(const std::string& name, std::vector<TimeItem>* items) {
  for (TimeItem& item : *items)
    if (item.name == name) return &item;
  items->emplace_back();
  items->back().name = name;
  return &items->back();
}

// As PaddlePaddle tells memory manipulation from what users record.
bool NamesMemory(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::StrContains(lower, "memcpy") ||
         absl::StrContains(lower, "memorycopy") ||
         absl::StrContains(lower, "memset");
}

bool IsPhase(EventType type) {
  return type == EventType::kDataloader || type == EventType::kForward ||
         type == EventType::kBackward || type == EventType::kOptimization;
}

class Summarizer {
 public:
  explicit Summarizer(const ProfileTrace& trace)
      : trace_(trace), ours_(trace.producer == "pdkit") {}

  ProfileSummary Run() {
    summary_.operators.thread = "All threads merged";
    summary_.user.thread = "All threads merged";
    for (const TraceEvent& event : trace_.events)
      if (OnGpu(event)) work_[event.id].push_back(&event);
    SumStarted();
    Kinds();
    Walk();
    Model();
    StepSamples();
    return std::move(summary_);
  }

 private:
  // An event with those around it.
  struct Place {
    const TraceEvent* event;
    const TraceSite* site;
  };

  // The work of a GPU bears the number of the event that started it.
  bool OnGpu(const TraceEvent& event) const {
    const EventType type = trace_.SiteOf(event).type;
    return ours_ && event.id != 0 &&
           (type == EventType::kKernel || type == EventType::kMemcpy ||
            type == EventType::kMemset);
  }

  // Time on a GPU of the work that the event itself has started; nothing when
  // none.
  std::optional<int64_t> OwnWork(const TraceEvent& event) const {
    const auto work = work_.find(event.id);
    if (event.id == 0 || work == work_.end() ||
        trace_.SiteOf(event).type == EventType::kProfileStep || OnGpu(event))
      return std::nullopt;
    int64_t total = 0;
    for (const TraceEvent* piece : work->second) total += piece->duration();
    return total;
  }

  // The same of an event and those inside it, as calls of CUDA are in ops.
  std::optional<int64_t> StartedBy(const Place& place) const {
    return within_[static_cast<size_t>(place.event - trace_.events.data())];
  }

  // Takes the events off `around` that do not lie around the next one.
  static void Leave(const TraceEvent& next, std::vector<Place>* around) {
    if (!around->empty() && around->back().event->thread != next.thread)
      around->clear();
    while (!around->empty() && around->back().event->end_ns <= next.begin_ns &&
           around->back().event->end_ns < next.end_ns)
      around->pop_back();
  }

  void SumStarted() {
    within_.resize(trace_.events.size());
    std::vector<Place> around;
    for (const TraceEvent& event : trace_.events) {
      Leave(event, &around);
      around.push_back({&event, &trace_.SiteOf(event)});
      const std::optional<int64_t> own = OwnWork(event);
      if (!own.has_value()) continue;
      for (const Place& place : around) {
        auto& sum =
            within_[static_cast<size_t>(place.event - trace_.events.data())];
        sum = sum.value_or(0) + *own;
      }
    }
  }

  void Kinds() {
    std::map<std::pair<EventType, bool>, std::vector<Range>> ranges;
    std::vector<Range> communication;
    for (const TraceEvent& event : trace_.events) {
      const TraceSite& site = trace_.SiteOf(event);
      const Range range = {event.begin_ns, event.end_ns};
      ranges[{site.type, OnGpu(event)}].push_back(range);
      if (IsCommunication(site)) communication.push_back(range);
    }
    for (auto& [kind, list] : ranges)
      summary_.kinds.push_back({kind.first, static_cast<int64_t>(list.size()),
                                CoveredTime(std::move(list)), kind.second});
    summary_.communication_calls = static_cast<int64_t>(communication.size());
    summary_.communication = CoveredTime(std::move(communication));
    std::stable_sort(summary_.kinds.begin(), summary_.kinds.end(),
                     [](const KindTime& a, const KindTime& b) {
                       const auto step = [](const KindTime& kind) {
                         return kind.type == EventType::kProfileStep;
                       };
                       if (step(a) != step(b)) return step(a);
                       return a.total > b.total;
                     });
  }

  // Every event once, knowing what it lies in.
  void Walk() {
    std::vector<Place> around;
    for (const TraceEvent& event : trace_.events) {
      Leave(event, &around);
      const Place place = {&event, &trace_.SiteOf(event)};
      Take(place, around);
      around.push_back(place);
    }
  }

  void Take(const Place& place, const std::vector<Place>& around) {
    const TraceSite& site = *place.site;
    const int64_t ns = place.event->duration();
    if (OnGpu(*place.event)) return TakeGpu(site, ns);
    const Place* parent = around.empty() ? nullptr : &around.back();
    if (site.type == EventType::kProfileStep) {
      summary_.step_samples.push_back(static_cast<double>(ns));
      summary_.reading_samples.push_back(0);
      phases_.emplace_back();
    }
    if (site.type == EventType::kOperator) TakeOperator(place, parent);
    if (parent != nullptr && parent->site->type == EventType::kOperator &&
        site.type != EventType::kOperator)
      for (std::vector<TimeItem>* items : ItemsOf(*parent))
        TakeInner(place, Find(parent->site->name, items));
    if (site.type == EventType::kMemcpy) TakeMove(place);
    TakeUser(place);
    TakePhase(place, around);
    Cover(place, around);
  }

  // A part of an op, and the kernels that it has started.
  void TakeInner(const Place& place, TimeItem* op) {
    op->Inner(place.site->name)->Add(place.event->duration());
    if (!OwnWork(*place.event).has_value()) return;
    for (const TraceEvent* piece : work_.at(place.event->id)) {
      TimeItem* kernel = op->Inner(trace_.SiteOf(*piece).name);
      ++kernel->calls;
      kernel->min = 0;
      kernel->gpu.Add(piece->duration());
    }
  }

  // Events from CUPTI have their own names, events that stand for the work of
  // an op the name of its implementation.
  void TakeGpu(const TraceSite& site, int64_t ns) {
    const bool move = site.type != EventType::kKernel;
    const std::string name =
        site.implementation.empty() ? site.name
        : move                      ? absl::StrCat(site.name, ":host<->device")
               : absl::StrCat(site.implementation, "<", site.name, ">");
    TimeItem* item = Find(name, move ? &summary_.memory : &summary_.kernels);
    ++item->calls;
    item->min = 0;
    item->gpu.Add(ns);
    AddWork(site, item);
  }

  std::vector<std::vector<TimeItem>*> ItemsOf(const Place& place) {
    return {&summary_.operators.items, OfThread(place, &summary_.by_thread)};
  }

  std::vector<TimeItem>* OfThread(const Place& place,
                                  std::vector<ThreadItems>* threads) {
    const TraceThread& thread = trace_.threads[place.event->thread];
    const std::string name =
        ours_ ? absl::StrCat(thread.name, " (", thread.id, ")")
              : absl::StrCat(thread.id);
    for (ThreadItems& of : *threads)
      if (of.thread == name) return &of.items;
    threads->push_back({name, {}});
    return &threads->back().items;
  }

  void TakeOperator(const Place& place, const Place* parent) {
    const TraceSite& site = *place.site;
    const int64_t ns = place.event->duration();
    const std::optional<int64_t> started = StartedBy(place);
    for (std::vector<TimeItem>* items : ItemsOf(place)) {
      TimeItem* item = Find(site.name, items);
      item->Add(ns);
      AddWork(site, item);
      if (started.has_value()) item->gpu.Add(*started);
      if (site.implementation.empty()) continue;
      TimeItem* inner =
          item->Inner(absl::StrCat(site.name, "::", site.implementation));
      inner->Add(ns);
      if (started.has_value()) inner->gpu.Add(*started);
    }
    if (!site.implementation.empty() && !started.has_value()) {
      TimeItem* kernel =
          Find(absl::StrCat(site.implementation, "<", site.name, ">"),
               &summary_.kernels);
      kernel->Add(ns);
      AddWork(site, kernel);
    }
    if (parent == nullptr || parent->site->type != EventType::kOperator)
      Sample(site, ns);
  }

  static void AddWork(const TraceSite& site, TimeItem* item) {
    item->flops += site.flops;
    item->bytes += site.bytes_read + site.bytes_written;
  }

  void TakeMove(const Place& place) {
    const TraceSite& site = *place.site;
    TimeItem* item =
        Find(ours_ ? absl::StrCat(site.name, ":memory->memory") : site.name,
             &summary_.memory);
    item->Add(place.event->duration());
    AddWork(site, item);
    Sample(site, place.event->duration());
  }

  // Time of an op in the step at hand.
  void Sample(const TraceSite& site, int64_t ns) {
    if (summary_.step_samples.empty()) return;
    std::string name = site.name;
    if (!site.output.empty()) absl::StrAppend(&name, " -> ", site.output);
    std::vector<double>& samples = summary_.op_samples[name];
    samples.resize(summary_.step_samples.size());
    samples.back() += static_cast<double>(ns);
  }

  void TakeUser(const Place& place) {
    const TraceSite& site = *place.site;
    const bool user = site.type == EventType::kUserDefined;
    if (!user && site.type != EventType::kPythonUserDefined) return;
    if (NamesMemory(site.name)) {
      Find(site.name, &summary_.memory)->Add(place.event->duration());
      return;
    }
    // Ranges that PaddlePaddle's own C++ code records are not the user's.
    if (user && !ours_) return;
    Find(site.name, &summary_.user.items)->Add(place.event->duration());
    Find(site.name, OfThread(place, &summary_.user_by_thread))
        ->Add(place.event->duration());
  }

  // Outermost phases only. Ours come in pieces, where ops of different phases
  // take turns: those of a step are one.
  void TakePhase(const Place& place, const std::vector<Place>& around) {
    const TraceSite& site = *place.site;
    const int64_t ns = place.event->duration();
    if (const auto started = OwnWork(*place.event); started.has_value())
      for (const Place& outer : around)
        if (IsPhase(outer.site->type) ||
            outer.site->type == EventType::kProfileStep)
          gpu_[outer.site->type].Add(*started);
    if (site.type == EventType::kProfileStep)
      Find("ProfileStep", &model_)->Add(ns);
    if (!IsPhase(site.type)) return;
    for (const Place& outer : around)
      if (IsPhase(outer.site->type)) return;
    if (!ours_)
      Find(std::string(Name(site.type)), &model_)->Add(ns);
    else if (!phases_.empty())
      phases_.back()[site.type] += ns;
  }

  void Model() {
    for (const auto& step : phases_)
      for (const auto& [type, ns] : step)
        Find(std::string(Name(type)), &model_)->Add(ns);
    for (const char* name :
         {"ProfileStep", "Dataloader", "Forward", "Backward", "Optimization"})
      for (TimeItem& item : model_)
        if (item.name == name) {
          const auto gpu = gpu_.find(*EventTypeFromName(name));
          if (gpu != gpu_.end()) item.gpu = gpu->second;
          summary_.model.push_back(std::move(item));
        }
    summary_.steps = static_cast<int64_t>(summary_.step_samples.size());
    summary_.step_time = summary_.coverage.steps;
  }

  // Ops and reading inside steps; what lies in another one counts there.
  void Cover(const Place& place, const std::vector<Place>& around) {
    Coverage& coverage = summary_.coverage;
    const int64_t ns = place.event->duration();
    if (place.site->type == EventType::kProfileStep) {
      coverage.steps += ns;
      return;
    }
    int64_t* counted =
        place.site->type == EventType::kDataloader      ? &coverage.reading
        : place.site->type == EventType::kOperator      ? &coverage.ops
        : place.site->type == EventType::kMemcpy        ? &coverage.moves
        : place.site->type == EventType::kCommunication ? &coverage.waiting
                                                        : nullptr;
    if (counted == nullptr) return;
    bool in_step = false;
    for (const Place& outer : around) {
      in_step |= outer.site->type == EventType::kProfileStep;
      if (outer.site->IsOp() || outer.site->type == EventType::kDataloader)
        return;
    }
    if (!in_step) return;
    *counted += ns;
    if (place.site->type == EventType::kDataloader)
      summary_.reading_samples.back() += static_cast<double>(ns);
  }

  void StepSamples() {
    for (auto& [name, samples] : summary_.op_samples)
      samples.resize(summary_.step_samples.size());
  }

  const ProfileTrace& trace_;
  const bool ours_;
  ProfileSummary summary_;
  std::vector<TimeItem> model_;
  std::vector<std::map<EventType, int64_t>> phases_;  // by step
  // Pieces of work on a GPU, by number.
  std::map<int64_t, std::vector<const TraceEvent*>> work_;
  std::vector<std::optional<int64_t>> within_;  // StartedBy, by event
  std::map<EventType, TimeItem::Gpu> gpu_;      // of phases
};

}  // namespace

void TimeItem::Add(int64_t ns) {
  ++calls;
  total += ns;
  max = std::max(max, ns);
  min = std::min(min, ns);
}

void TimeItem::Gpu::Add(int64_t ns) {
  min = calls == 0 ? ns : std::min(min, ns);
  ++calls;
  total += ns;
  max = std::max(max, ns);
}

TimeItem* TimeItem::Inner(const std::string& name) {
  return Find(name, &inner);
}

ProfileSummary Summarize(const ProfileTrace& trace) {
  ProfileSummary summary = RanksOf(trace) == 1
                               ? Summarizer(trace).Run()
                               : Summarizer(TraceOfRank(trace, 0)).Run();
  summary.ranks = DistributionsOf(trace);
  return summary;
}

const std::vector<std::string>& SortKeyNames() {
  static const auto* names =
      new std::vector<std::string>{"CPUTotal", "CPUAvg", "CPUMax", "CPUMin",
                                   "GPUTotal", "GPUAvg", "GPUMax", "GPUMin"};
  return *names;
}

void SortItems(SortKey key, std::vector<TimeItem>* items) {
  const auto value = [key](const TimeItem& item) -> double {
    switch (key) {
      case SortKey::kCpuTotal:
        return static_cast<double>(-item.total);
      case SortKey::kCpuAvg:
        return -item.average();
      case SortKey::kCpuMax:
        return static_cast<double>(-item.max);
      case SortKey::kCpuMin:
        return static_cast<double>(item.min);
      case SortKey::kGpuTotal:
        return static_cast<double>(-item.gpu.total);
      case SortKey::kGpuAvg:
        return -item.gpu.average();
      case SortKey::kGpuMax:
        return static_cast<double>(-item.gpu.max);
      case SortKey::kGpuMin:
        return static_cast<double>(item.gpu.min);
    }
    return 0;
  };
  std::stable_sort(items->begin(), items->end(),
                   [&](const TimeItem& a, const TimeItem& b) {
                     return value(a) < value(b);
                   });
}

}  // namespace pd
