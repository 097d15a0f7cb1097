// SPDX-License-Identifier: Apache-2.0
#include "formats/chrome_trace.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/json_text.h"

namespace pd {
namespace {

// Names come from programs of others: what is no UTF-8 becomes '?'.
std::string Quoted(absl::string_view text) {
  std::string clean(text), out;
  if (!IsUtf8(clean))
    for (char& c : clean)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  AppendJsonString(clean, &out);
  return out;
}

// Nanoseconds as microseconds, exactly.
std::string Micros(int64_t ns) {
  const auto parts = std::lldiv(ns, 1000);
  return absl::StrFormat("%s%d.%03d", ns < 0 && parts.quot == 0 ? "-" : "",
                         parts.quot, std::abs(parts.rem));
}

class Writer {
 public:
  explicit Writer(const ProfileTrace& trace) : trace_(trace) {}

  std::string Text() {
    out_ = "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{";
    for (size_t i = 0; i < trace_.facts.size(); ++i)
      absl::StrAppend(&out_, i > 0 ? "," : "", Quoted(trace_.facts[i].first),
                      ":", Quoted(trace_.facts[i].second));
    out_ += "},\n\"traceEvents\":[";
    Names();
    for (const TraceEvent& event : trace_.events) Complete(event);
    Flows();
    Steps();
    for (const TraceCounter& counter : trace_.counters) Counter(counter, "");
    Counter(PlannedMemory(), "derived");
    Counter(BusyThreads(), "derived");
    out_ += "],\n\"pdkit\":{";
    Own();
    out_ += "}}\n";
    return std::move(out_);
  }

 private:
  // Begins an event: what every one has.
  void Begin(const char* phase, absl::string_view name, uint64_t thread) {
    absl::StrAppend(&out_, first_ ? "\n" : ",\n", "{\"ph\":\"", phase,
                    "\",\"pid\":", trace_.process, ",\"tid\":", thread,
                    ",\"name\":", Quoted(name));
    first_ = false;
  }

  void Meta(const char* what, uint64_t thread, const std::string& args) {
    Begin("M", what, thread);
    absl::StrAppend(&out_, ",\"args\":{", args, "}}");
  }

  void Names() {
    Meta("process_name", trace_.process,
         absl::StrCat("\"name\":", Quoted(trace_.process_name)));
    for (size_t i = 0; i < trace_.threads.size(); ++i) {
      const TraceThread& thread = trace_.threads[i];
      Meta("thread_name", thread.id,
           absl::StrCat("\"name\":", Quoted(thread.name)));
      Meta("thread_sort_index", thread.id, absl::StrCat("\"sort_index\":", i));
    }
  }

  void Complete(const TraceEvent& event) {
    const TraceSite& site = trace_.SiteOf(event);
    Begin("X",
          site.type == EventType::kProfileStep
              ? absl::StrCat(site.name, "#", event.id)
              : site.name,
          trace_.threads[event.thread].id);
    absl::StrAppend(&out_, ",\"cat\":\"", Name(site.type),
                    "\",\"ts\":", Micros(event.begin_ns),
                    ",\"dur\":", Micros(event.duration()),
                    ",\"args\":{\"site\":", event.site);
    if (event.id != 0) absl::StrAppend(&out_, ",\"id\":", event.id);
    Details(site, event);
    out_ += "}}";
  }

  // The details shown for an event that is clicked on.
  void Details(const TraceSite& site, const TraceEvent& event) {
    for (const auto& [name, text] :
         {std::make_pair("output", &site.output),
          std::make_pair("implementation", &site.implementation),
          std::make_pair("layer", &site.layer)})
      if (!text->empty())
        absl::StrAppend(&out_, ",\"", name, "\":", Quoted(*text));
    const double ns =
        static_cast<double>(std::max<int64_t>(event.duration(), 1));
    const int64_t bytes = site.bytes_read + site.bytes_written;
    if (site.flops > 0)
      absl::StrAppendFormat(&out_, ",\"GFLOP/s\":%.6g",
                            static_cast<double>(site.flops) / ns);
    if (bytes > 0)
      absl::StrAppendFormat(&out_, ",\"GB/s\":%.6g",
                            static_cast<double>(bytes) / ns);
    if (site.launch.has_value()) Launch(*site.launch);
  }

  // In the words of PaddlePaddle's traces.
  void Launch(const TraceLaunch& launch) {
    const auto extents = [](const int64_t(&n)[3]) {
      return absl::StrCat("[", n[0], ",", n[1], ",", n[2], "]");
    };
    absl::StrAppend(&out_, ",\"grid\":", extents(launch.grid),
                    ",\"block\":", extents(launch.block),
                    ",\"registers per thread\":", launch.registers,
                    ",\"shared memory\":", launch.shared_bytes);
  }

  // From what made something to what took it.
  void Flows() {
    std::map<int64_t, std::vector<const TraceEvent*>> ends;
    for (const TraceEvent& event : trace_.events)
      if (event.id != 0 && trace_.SiteOf(event).type != EventType::kProfileStep)
        ends[event.id].push_back(&event);
    for (auto& [id, events] : ends) {
      if (events.size() != 2 || events[0]->thread == events[1]->thread)
        continue;
      if (events[1]->end_ns < events[0]->end_ns)
        std::swap(events[0], events[1]);
      for (size_t i = 0; i < 2; ++i) {
        // In the middle of the slice, so that it belongs to it.
        Begin(i == 0 ? "s" : "f", "batch",
              trace_.threads[events[i]->thread].id);
        absl::StrAppend(&out_, i == 0 ? "" : ",\"bp\":\"e\"",
                        ",\"cat\":\"flow\",\"id\":", id, ",\"ts\":",
                        Micros(events[i]->begin_ns + events[i]->duration() / 2),
                        "}");
      }
    }
  }

  void Steps() {
    for (const TraceEvent& event : trace_.events) {
      if (trace_.SiteOf(event).type != EventType::kProfileStep) continue;
      Begin("i", absl::StrCat("step ", event.id),
            trace_.threads[event.thread].id);
      absl::StrAppend(&out_, ",\"cat\":\"derived\",\"s\":\"p\",\"ts\":",
                      Micros(event.begin_ns), "}");
    }
  }

  void Counter(const TraceCounter& counter, absl::string_view category) {
    for (const auto& [at, value] : counter.points) {
      Begin("C", counter.name, trace_.process);
      if (!category.empty())
        absl::StrAppend(&out_, ",\"cat\":\"", category, "\"");
      absl::StrAppend(&out_, ",\"ts\":", Micros(at), ",\"args\":{",
                      Quoted(counter.unit), ":",
                      absl::StrFormat("%.17g", value), "}}");
    }
  }

  TraceCounter PlannedMemory() const {
    TraceCounter counter{"memory of the plan", "MB", {}};
    int64_t before = -1;
    for (const TraceEvent& event : trace_.events) {
      const TraceSite& site = trace_.SiteOf(event);
      if (!site.index.has_value() || site.alive_bytes == before) continue;
      before = site.alive_bytes;
      counter.points.emplace_back(event.begin_ns,
                                  static_cast<double>(before) / 1e6);
    }
    return counter;
  }

  // Threads that have an event open.
  TraceCounter BusyThreads() const {
    std::map<int64_t, int> changes;
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const TraceEvent& event = trace_.events[i];
      const bool outer = i == 0 ||
                         event.thread != trace_.events[i - 1].thread ||
                         event.begin_ns >= end;
      if (!outer) continue;
      end = event.end_ns;
      ++changes[event.begin_ns];
      --changes[event.end_ns];
    }
    TraceCounter counter{"threads with events", "threads", {}};
    int now = 0;
    for (const auto& [at, change] : changes) {
      if (change == 0) continue;
      now += change;
      counter.points.emplace_back(at, now);
    }
    return counter;
  }

  void Own() {
    absl::StrAppend(&out_, "\"version\":", ProfileTrace::kVersion,
                    ",\"producer\":", Quoted(trace_.producer),
                    ",\"start_unix_ns\":\"", trace_.start_unix_ns,
                    "\",\"first_step\":", trace_.first_step,
                    ",\"peak_bytes\":", trace_.peak_bytes, ",\n\"threads\":[");
    for (size_t i = 0; i < trace_.threads.size(); ++i)
      absl::StrAppend(&out_, i > 0 ? "," : "",
                      "{\"tid\":", trace_.threads[i].id,
                      ",\"name\":", Quoted(trace_.threads[i].name),
                      ",\"lost\":", trace_.threads[i].lost, "}");
    out_ += "],\n\"sites\":[";
    for (size_t i = 0; i < trace_.sites.size(); ++i) {
      out_ += i > 0 ? ",\n" : "\n";
      Site(trace_.sites[i]);
    }
    out_ += "],\n\"peak\":[";
    for (size_t i = 0; i < trace_.peak.size(); ++i)
      absl::StrAppend(&out_, i > 0 ? ",\n" : "\n",
                      "{\"name\":", Quoted(trace_.peak[i].name),
                      ",\"bytes\":", trace_.peak[i].bytes,
                      ",\"from\":", Quoted(trace_.peak[i].from),
                      ",\"to\":", Quoted(trace_.peak[i].to), "}");
    out_ += "]";
  }

  void Site(const TraceSite& site) {
    absl::StrAppend(&out_, "{\"cat\":\"", Name(site.type),
                    "\",\"name\":", Quoted(site.name));
    for (const auto& [name, text] :
         {std::make_pair("output", &site.output),
          std::make_pair("implementation", &site.implementation),
          std::make_pair("layer", &site.layer)})
      if (!text->empty())
        absl::StrAppend(&out_, ",\"", name, "\":", Quoted(*text));
    if (site.plan.has_value()) absl::StrAppend(&out_, ",\"plan\":", *site.plan);
    if (site.index.has_value())
      absl::StrAppend(&out_, ",\"index\":", *site.index);
    for (const auto& [name, number] :
         {std::make_pair("flops", site.flops),
          std::make_pair("bytes_read", site.bytes_read),
          std::make_pair("bytes_written", site.bytes_written),
          std::make_pair("alive_bytes", site.alive_bytes)})
      if (number != 0) absl::StrAppend(&out_, ",\"", name, "\":", number);
    if (!site.refusals.empty()) {
      out_ += ",\"refusals\":[";
      for (size_t i = 0; i < site.refusals.size(); ++i)
        absl::StrAppend(&out_, i > 0 ? "," : "", Quoted(site.refusals[i]));
      out_ += "]";
    }
    if (site.launch.has_value()) {
      const TraceLaunch& l = *site.launch;
      absl::StrAppend(&out_, ",\"launch\":[", l.grid[0], ",", l.grid[1], ",",
                      l.grid[2], ",", l.block[0], ",", l.block[1], ",",
                      l.block[2], ",", l.registers, ",", l.shared_bytes, "]");
    }
    out_ += "}";
  }

  const ProfileTrace& trace_;
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string ChromeTraceText(const ProfileTrace& trace) {
  return Writer(trace).Text();
}

}  // namespace pd
