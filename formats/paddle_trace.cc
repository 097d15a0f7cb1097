// SPDX-License-Identifier: Apache-2.0
#include "formats/paddle_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/paddle_trace.pb.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace format = paddle_trace_format;

constexpr char kPaddleVersion[] = "1.0.2";
// PaddlePaddle's times are not negative: ours begin here.
constexpr uint64_t kOrigin = uint64_t{1} << 60;

void WriteSite(const TraceSite& site, format::Site* out) {
  out->set_type(static_cast<int>(site.type));
  out->set_name(site.name);
  out->set_output(site.output);
  out->set_implementation(site.implementation);
  out->set_layer(site.layer);
  if (site.plan.has_value()) out->set_plan(*site.plan);
  if (site.index.has_value()) out->set_index(*site.index);
  out->set_flops(site.flops);
  out->set_bytes_read(site.bytes_read);
  out->set_bytes_written(site.bytes_written);
  out->set_alive_bytes(site.alive_bytes);
  for (const std::string& refusal : site.refusals) out->add_refusals(refusal);
  if (!site.launch.has_value()) return;
  for (const int64_t extent : site.launch->grid) out->add_launch(extent);
  for (const int64_t extent : site.launch->block) out->add_launch(extent);
  out->add_launch(site.launch->registers);
  out->add_launch(site.launch->shared_bytes);
}

// The events of one thread as a tree, whose root is a helper.
void WriteThread(const ProfileTrace& trace, uint32_t number,
                 format::NodeTrees* file) {
  const TraceThread& thread = trace.threads[number];
  format::ThreadTree* tree = file->add_thread_trees();
  tree->set_thread_id(thread.id);
  tree->set_name(thread.name);
  tree->set_lost(thread.lost);
  const auto add = [&](int64_t id, int64_t parent, const std::string& name,
                       EventType type) {
    format::HostNode* node = tree->add_host_nodes();
    node->set_id(id);
    node->set_parentid(parent);
    format::HostEvent* event = node->mutable_host_trace_event();
    event->set_name(name);
    event->set_type(static_cast<int>(type));
    event->set_process_id(trace.process);
    event->set_thread_id(thread.id);
    return event;
  };
  format::HostEvent* root = add(0, -1, "root node", EventType::kUserDefined);
  root->set_start_ns(0);
  root->set_end_ns(UINT64_MAX);
  std::vector<std::pair<int64_t, int64_t>> open;  // end, id
  int64_t next = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.thread != number) continue;
    while (!open.empty() && open.back().first <= event.begin_ns &&
           open.back().first < event.end_ns)
      open.pop_back();
    const TraceSite& site = trace.SiteOf(event);
    const int64_t parent = open.empty() ? 0 : open.back().second;
    format::HostEvent* out = add(++next, parent,
                                 site.type == EventType::kProfileStep
                                     ? absl::StrCat(site.name, "#", event.id)
                                     : site.name,
                                 site.type);
    out->set_start_ns(kOrigin + static_cast<uint64_t>(event.begin_ns));
    out->set_end_ns(kOrigin + static_cast<uint64_t>(event.end_ns));
    out->set_site(event.site);
    out->set_id(event.id);
    open.emplace_back(event.end_ns, next);
  }
}

class Reader {
 public:
  absl::StatusOr<ProfileTrace> Read(absl::string_view bytes) {
    format::NodeTrees file;
    if (bytes.size() > INT32_MAX ||
        !file.ParsePartialFromArray(bytes.data(),
                                    static_cast<int>(bytes.size())))
      return DataLoss(
          "neither JSON nor a protobuf of PaddlePaddle's profiler, or damaged");
    if (!file.IsInitialized())
      return DataLoss(
          "a protobuf that lacks fields of PaddlePaddle's profiler: %s",
          file.InitializationErrorString());
    ours_ = file.has_our_version();
    if (ours_ && file.our_version() != ProfileTrace::kVersion)
      return InvalidArgument("a trace of version %d; this build reads %d",
                             file.our_version(), ProfileTrace::kVersion);
    if (!absl::StartsWith(file.version(), "1."))
      return InvalidArgument(
          "a trace of PaddlePaddle's version '%s'; this build reads 1.x",
          file.version());
    trace_.producer = ours_ ? file.producer() : "PaddlePaddle";
    for (const format::Fact& fact : file.extra_info())
      trace_.facts.emplace_back(fact.key(), fact.value());
    if (ours_) PD_RETURN_IF_ERROR(ReadOwn(file));
    if (!ours_) origin_ = FirstNanosecond(file);
    for (const format::ThreadTree& tree : file.thread_trees())
      PD_RETURN_IF_ERROR(ReadThread(tree));
    SortEvents(&trace_);
    PD_RETURN_IF_ERROR(CheckTrace(trace_));
    return std::move(trace_);
  }

 private:
  absl::Status ReadOwn(const format::NodeTrees& file) {
    origin_ = kOrigin;
    trace_.process = file.process();
    trace_.process_name = file.process_name();
    trace_.start_unix_ns = file.start_unix_ns();
    trace_.first_step = file.first_step();
    trace_.peak_bytes = file.peak_bytes();
    for (const format::Site& in : file.sites()) {
      TraceSite site;
      PD_ASSIGN_OR_RETURN(site.type, TypeOf(in.type()));
      site.name = in.name();
      site.output = in.output();
      site.implementation = in.implementation();
      site.layer = in.layer();
      if (in.has_plan()) site.plan = in.plan();
      if (in.has_index()) site.index = in.index();
      site.flops = std::max<int64_t>(in.flops(), 0);
      site.bytes_read = std::max<int64_t>(in.bytes_read(), 0);
      site.bytes_written = std::max<int64_t>(in.bytes_written(), 0);
      site.alive_bytes = std::max<int64_t>(in.alive_bytes(), 0);
      site.refusals.assign(in.refusals().begin(), in.refusals().end());
      PD_RETURN_IF_ERROR(ReadLaunch(in, &site));
      trace_.sites.push_back(std::move(site));
    }
    for (const format::Counter& in : file.counters()) {
      if (in.at_ns_size() != in.value_size())
        return DataLoss("counter '%s' has %d times and %d values", in.name(),
                        in.at_ns_size(), in.value_size());
      TraceCounter counter{in.name(), in.unit(), {}};
      for (int i = 0; i < in.value_size(); ++i)
        counter.points.emplace_back(in.at_ns(i), in.value(i));
      trace_.counters.push_back(std::move(counter));
    }
    for (const format::Tensor& in : file.peak())
      trace_.peak.push_back({in.name(), in.bytes(), in.from(), in.to()});
    return absl::OkStatus();
  }

  static absl::Status ReadLaunch(const format::Site& in, TraceSite* site) {
    constexpr int kFields = 8;
    if (in.launch_size() == 0) return absl::OkStatus();
    if (in.launch_size() != kFields)
      return DataLoss("kernel '%s' has %d numbers of its start; expected %d",
                      in.name(), in.launch_size(), kFields);
    TraceLaunch& launch = site->launch.emplace();
    for (int i = 0; i < 3; ++i) {
      launch.grid[i] = in.launch(i);
      launch.block[i] = in.launch(3 + i);
    }
    launch.registers = in.launch(6);
    launch.shared_bytes = in.launch(7);
    return absl::OkStatus();
  }

  static absl::StatusOr<EventType> TypeOf(int32_t type) {
    if (type < 0 || type >= kEventTypes)
      return DataLoss("an event of kind %d; there are 0 to %d", type,
                      kEventTypes - 1);
    return static_cast<EventType>(type);
  }

  static uint64_t FirstNanosecond(const format::NodeTrees& file) {
    uint64_t first = UINT64_MAX;
    for (const format::ThreadTree& tree : file.thread_trees())
      for (const format::HostNode& node : tree.host_nodes())
        if (node.parentid() >= 0)
          first = std::min<uint64_t>(first, node.host_trace_event().start_ns());
    return first == UINT64_MAX ? 0 : first;
  }

  absl::Status ReadThread(const format::ThreadTree& tree) {
    const auto number = static_cast<uint32_t>(trace_.threads.size());
    trace_.threads.push_back(
        {tree.thread_id(),
         tree.has_name() ? tree.name() : absl::StrCat(tree.thread_id()),
         tree.lost()});
    for (const format::HostNode& node : tree.host_nodes()) {
      if (node.parentid() < 0) continue;  // the helper around all
      const format::HostEvent& in = node.host_trace_event();
      if (!ours_) trace_.process = in.process_id();
      TraceEvent event;
      event.thread = number;
      event.begin_ns = static_cast<int64_t>(in.start_ns() - origin_);
      event.end_ns = static_cast<int64_t>(in.end_ns() - origin_);
      event.id = in.id();
      if (ours_) {
        event.site = in.site();
      } else {
        PD_ASSIGN_OR_RETURN(event.site, SiteOf(in, &event));
      }
      trace_.events.push_back(event);
    }
    return absl::OkStatus();
  }

  // PaddlePaddle's events know their kind and name.
  absl::StatusOr<uint32_t> SiteOf(const format::HostEvent& in,
                                  TraceEvent* event) {
    TraceSite site;
    PD_ASSIGN_OR_RETURN(site.type, TypeOf(in.type()));
    site.name = in.name();
    const size_t mark = site.name.rfind('#');
    if (site.type == EventType::kProfileStep && mark != std::string::npos &&
        absl::SimpleAtoi(site.name.substr(mark + 1), &event->id))
      site.name.resize(mark);
    const auto [at, added] = sites_.try_emplace(
        {in.type(), site.name}, static_cast<uint32_t>(trace_.sites.size()));
    if (added) trace_.sites.push_back(std::move(site));
    return at->second;
  }

  ProfileTrace trace_;
  bool ours_ = false;
  uint64_t origin_ = 0;
  std::map<std::pair<int32_t, std::string>, uint32_t> sites_;
};

}  // namespace

std::string PaddleTraceBytes(const ProfileTrace& trace) {
  format::NodeTrees file;
  file.set_version(kPaddleVersion);
  file.set_span_indx(0);
  file.set_our_version(ProfileTrace::kVersion);
  file.set_producer(trace.producer);
  file.set_process(trace.process);
  file.set_process_name(trace.process_name);
  file.set_start_unix_ns(trace.start_unix_ns);
  file.set_first_step(trace.first_step);
  file.set_peak_bytes(trace.peak_bytes);
  for (const auto& [name, value] : trace.facts) {
    format::Fact* fact = file.add_extra_info();
    fact->set_key(name);
    fact->set_value(value);
  }
  for (uint32_t i = 0; i < trace.threads.size(); ++i)
    WriteThread(trace, i, &file);
  for (const TraceSite& site : trace.sites) WriteSite(site, file.add_sites());
  for (const TraceCounter& counter : trace.counters) {
    format::Counter* out = file.add_counters();
    out->set_name(counter.name);
    out->set_unit(counter.unit);
    for (const auto& [at, value] : counter.points) {
      out->add_at_ns(at);
      out->add_value(value);
    }
  }
  for (const TraceTensor& tensor : trace.peak) {
    format::Tensor* out = file.add_peak();
    out->set_name(tensor.name);
    out->set_bytes(tensor.bytes);
    out->set_from(tensor.from);
    out->set_to(tensor.to);
  }
  return file.SerializeAsString();
}

absl::StatusOr<ProfileTrace> ParsePaddleTrace(absl::string_view bytes) {
  return Reader().Read(bytes);
}

}  // namespace pd
