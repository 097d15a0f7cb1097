// SPDX-License-Identifier: Apache-2.0
// The reading half of chrome_trace.h.
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/chrome_trace.h"
#include "formats/json_line.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Kind = JsonNode::Kind;

constexpr double kMostExact =
    9007199254740992.0;  // 2^53: exact in JSON's numbers

class Reader {
 public:
  absl::StatusOr<ProfileTrace> Read(absl::string_view text) {
    PD_RETURN_IF_ERROR(json_.Parse(text));
    const size_t own = json_.Member(0, "pdkit");
    const size_t events = json_.Member(0, "traceEvents");
    if (own == 0 || events == 0 || node(own).kind != Kind::kObject)
      return InvalidArgument(
          "JSON, but no trace of pd-profile: it has no 'traceEvents' or no "
          "'pdkit'");
    PD_ASSIGN_OR_RETURN(const int64_t version, Integer(own, "version", 0));
    if (version != ProfileTrace::kVersion)
      return InvalidArgument("a trace of version %d; this build reads %d",
                             version, ProfileTrace::kVersion);
    PD_RETURN_IF_ERROR(ReadOwn(own));
    PD_RETURN_IF_ERROR(ReadFacts());
    PD_RETURN_IF_ERROR(ForEachItem(events, "traceEvents",
                                   [&](size_t at) { return ReadEvent(at); }));
    SortEvents(&trace_);
    PD_RETURN_IF_ERROR(CheckTrace(trace_));
    return std::move(trace_);
  }

 private:
  const JsonNode& node(size_t at) const { return json_.nodes()[at]; }

  template <typename Body>
  absl::Status ForEachItem(size_t array, const char* what, const Body& body) {
    if (array == 0 || node(array).kind != Kind::kArray)
      return DataLoss("'%s' is no array", what);
    size_t at = array + 1;
    for (size_t i = 0; i < node(array).items; ++i, at = node(at).end) {
      if (node(at).kind != Kind::kObject)
        return DataLoss("%s[%d] is %s; expected an object", what, i,
                        KindName(node(at).kind));
      PD_RETURN_IF_ERROR(Annotate(body(at), absl::StrCat(what, "[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> TextAt(size_t at, const char* name) {
    if (node(at).kind != Kind::kString)
      return DataLoss("'%s' is %s; expected a text", name,
                      KindName(node(at).kind));
    std::string buffer;
    PD_ASSIGN_OR_RETURN(const absl::string_view text, json_.Text(at, &buffer));
    return std::string(text);
  }

  // A member; "" when it is not there.
  absl::StatusOr<std::string> Text(size_t object, const char* name) {
    const size_t at = json_.Member(object, name);
    return at == 0 ? std::string() : TextAt(at, name);
  }

  absl::StatusOr<double> NumberAt(size_t at, const char* name) {
    if (node(at).kind != Kind::kNumber ||
        !(std::fabs(node(at).number) < kMostExact))
      return DataLoss("'%s' is no number below 2^53", name);
    return node(at).number;
  }

  absl::StatusOr<double> Number(size_t object, const char* name,
                                double otherwise) {
    const size_t at = json_.Member(object, name);
    if (at == 0) return otherwise;
    return NumberAt(at, name);
  }

  absl::StatusOr<int64_t> Integer(size_t object, const char* name,
                                  int64_t otherwise) {
    const size_t at = json_.Member(object, name);
    if (at == 0) return otherwise;
    return IntegerAt(at, name);
  }

  absl::StatusOr<int64_t> IntegerAt(size_t at, const char* name) {
    PD_ASSIGN_OR_RETURN(const double number, NumberAt(at, name));
    if (number != std::floor(number))
      return DataLoss("'%s' is %g; expected an integer", name, number);
    return static_cast<int64_t>(number);
  }

  absl::StatusOr<int64_t> Nanoseconds(size_t object, const char* name) {
    PD_ASSIGN_OR_RETURN(const double micros, Number(object, name, 0));
    if (std::fabs(micros) > kMostExact / 1000)
      return DataLoss("'%s' is %g microseconds", name, micros);
    return std::llround(micros * 1000);
  }

  absl::Status ReadOwn(size_t own) {
    PD_ASSIGN_OR_RETURN(trace_.producer, Text(own, "producer"));
    PD_ASSIGN_OR_RETURN(const std::string start, Text(own, "start_unix_ns"));
    if (!absl::SimpleAtoi(start, &trace_.start_unix_ns))
      return DataLoss("'start_unix_ns' is no number");
    PD_ASSIGN_OR_RETURN(trace_.first_step, Integer(own, "first_step", 0));
    PD_ASSIGN_OR_RETURN(trace_.peak_bytes, Integer(own, "peak_bytes", 0));
    PD_RETURN_IF_ERROR(ForEachItem(
        json_.Member(own, "threads"), "threads",
        [&](size_t at) -> absl::Status {
          TraceThread thread;
          PD_ASSIGN_OR_RETURN(const int64_t id, Integer(at, "tid", 0));
          PD_ASSIGN_OR_RETURN(thread.name, Text(at, "name"));
          PD_ASSIGN_OR_RETURN(const int64_t lost, Integer(at, "lost", 0));
          if (id < 0 || lost < 0) return DataLoss("a number below 0");
          thread.id = static_cast<uint64_t>(id);
          thread.lost = static_cast<uint64_t>(lost);
          threads_[thread.id] = static_cast<uint32_t>(trace_.threads.size());
          trace_.threads.push_back(std::move(thread));
          return absl::OkStatus();
        }));
    PD_RETURN_IF_ERROR(ForEachItem(json_.Member(own, "sites"), "sites",
                                   [&](size_t at) { return ReadSite(at); }));
    return ForEachItem(
        json_.Member(own, "peak"), "peak", [&](size_t at) -> absl::Status {
          TraceTensor tensor;
          PD_ASSIGN_OR_RETURN(tensor.name, Text(at, "name"));
          PD_ASSIGN_OR_RETURN(tensor.bytes, Integer(at, "bytes", 0));
          PD_ASSIGN_OR_RETURN(tensor.from, Text(at, "from"));
          PD_ASSIGN_OR_RETURN(tensor.to, Text(at, "to"));
          trace_.peak.push_back(std::move(tensor));
          return absl::OkStatus();
        });
  }

  absl::Status ReadSite(size_t at) {
    TraceSite site;
    PD_ASSIGN_OR_RETURN(const std::string type, Text(at, "cat"));
    const auto known = EventTypeFromName(type);
    if (!known.has_value()) return DataLoss("kind '%s' is not known", type);
    site.type = *known;
    PD_ASSIGN_OR_RETURN(site.name, Text(at, "name"));
    PD_ASSIGN_OR_RETURN(site.output, Text(at, "output"));
    PD_ASSIGN_OR_RETURN(site.implementation, Text(at, "implementation"));
    PD_ASSIGN_OR_RETURN(site.layer, Text(at, "layer"));
    for (const auto& [name, field] : {std::make_pair("plan", &site.plan),
                                      std::make_pair("index", &site.index)})
      if (json_.Member(at, name) != 0) {
        PD_ASSIGN_OR_RETURN(*field, Integer(at, name, 0));
      }
    for (const auto& [name, field] :
         {std::make_pair("flops", &site.flops),
          std::make_pair("bytes_read", &site.bytes_read),
          std::make_pair("bytes_written", &site.bytes_written),
          std::make_pair("alive_bytes", &site.alive_bytes)}) {
      PD_ASSIGN_OR_RETURN(*field, Integer(at, name, 0));
      if (*field < 0) return DataLoss("'%s' is %d", name, *field);
    }
    if (const size_t list = json_.Member(at, "refusals"); list != 0) {
      if (node(list).kind != Kind::kArray)
        return DataLoss("'refusals' is no array");
      size_t item = list + 1;
      for (size_t i = 0; i < node(list).items; ++i, item = node(item).end) {
        PD_ASSIGN_OR_RETURN(std::string text, TextAt(item, "refusals"));
        site.refusals.push_back(std::move(text));
      }
    }
    PD_RETURN_IF_ERROR(ReadLaunch(at, &site));
    trace_.sites.push_back(std::move(site));
    return absl::OkStatus();
  }

  absl::Status ReadLaunch(size_t at, TraceSite* site) {
    const size_t list = json_.Member(at, "launch");
    if (list == 0) return absl::OkStatus();
    TraceLaunch& launch = site->launch.emplace();
    int64_t* const fields[] = {&launch.grid[0],   &launch.grid[1],
                               &launch.grid[2],   &launch.block[0],
                               &launch.block[1],  &launch.block[2],
                               &launch.registers, &launch.shared_bytes};
    if (node(list).kind != Kind::kArray ||
        node(list).items != std::size(fields))
      return DataLoss("'launch' is no array of %d numbers", std::size(fields));
    size_t item = list + 1;
    for (int64_t* field : fields) {
      PD_ASSIGN_OR_RETURN(*field, IntegerAt(item, "launch"));
      item = node(item).end;
    }
    return absl::OkStatus();
  }

  absl::Status ReadFacts() {
    const size_t facts = json_.Member(0, "otherData");
    if (facts == 0 || node(facts).kind != Kind::kObject)
      return DataLoss("'otherData' is no object");
    size_t at = facts + 1;
    for (size_t i = 0; i < node(facts).items; ++i) {
      PD_ASSIGN_OR_RETURN(std::string name, TextAt(at, "otherData"));
      at = node(at).end;
      PD_ASSIGN_OR_RETURN(std::string value, TextAt(at, "otherData"));
      at = node(at).end;
      trace_.facts.emplace_back(std::move(name), std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status ReadEvent(size_t at) {
    PD_ASSIGN_OR_RETURN(const std::string phase, Text(at, "ph"));
    if (phase == "X") return ReadComplete(at);
    if (phase == "C") return ReadCounter(at);
    if (phase != "M") return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const std::string name, Text(at, "name"));
    if (name != "process_name") return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const int64_t process, Integer(at, "pid", 0));
    trace_.process = static_cast<uint64_t>(process);
    PD_ASSIGN_OR_RETURN(trace_.process_name,
                        Text(json_.Member(at, "args"), "name"));
    return absl::OkStatus();
  }

  absl::Status ReadComplete(size_t at) {
    const size_t args = json_.Member(at, "args");
    TraceEvent event;
    PD_ASSIGN_OR_RETURN(const int64_t site, Integer(args, "site", -1));
    if (site < 0 || site >= static_cast<int64_t>(trace_.sites.size()))
      return DataLoss("site %d; there are %d", site, trace_.sites.size());
    PD_ASSIGN_OR_RETURN(const int64_t id, Integer(at, "tid", -1));
    const auto thread = threads_.find(static_cast<uint64_t>(id));
    if (thread == threads_.end()) return DataLoss("thread %d has no name", id);
    event.site = static_cast<uint32_t>(site);
    event.thread = thread->second;
    PD_ASSIGN_OR_RETURN(event.id, Integer(args, "id", 0));
    PD_ASSIGN_OR_RETURN(event.begin_ns, Nanoseconds(at, "ts"));
    PD_ASSIGN_OR_RETURN(const int64_t duration, Nanoseconds(at, "dur"));
    event.end_ns = event.begin_ns + duration;
    trace_.events.push_back(event);
    return absl::OkStatus();
  }

  absl::Status ReadCounter(size_t at) {
    PD_ASSIGN_OR_RETURN(const std::string category, Text(at, "cat"));
    if (category == "derived") return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(std::string name, Text(at, "name"));
    PD_ASSIGN_OR_RETURN(const int64_t when, Nanoseconds(at, "ts"));
    const size_t args = json_.Member(at, "args");
    if (args == 0 || node(args).kind != Kind::kObject || node(args).items != 1)
      return DataLoss("a counter has no value");
    PD_ASSIGN_OR_RETURN(std::string unit, TextAt(args + 1, "args"));
    PD_ASSIGN_OR_RETURN(const double value, Number(args, unit.c_str(), 0));
    if (trace_.counters.empty() || trace_.counters.back().name != name)
      trace_.counters.push_back({std::move(name), std::move(unit), {}});
    trace_.counters.back().points.emplace_back(when, value);
    return absl::OkStatus();
  }

  JsonLine json_;
  ProfileTrace trace_;
  std::unordered_map<uint64_t, uint32_t> threads_;
};

}  // namespace

absl::StatusOr<ProfileTrace> ParseChromeTrace(absl::string_view text) {
  return Reader().Read(text);
}

}  // namespace pd
