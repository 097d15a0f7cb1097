// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/profile_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/file.h"
#include "libcore/profile/advice.h"
#include "libcore/profile/roofline.h"
#include "libcore/report/report_files.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostEvents = 100000;  // that a page shows

std::string Text(const Json& json) {
  // Names come from programs of others, which may be no UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double Ms(double ns) { return ns / 1e6; }

Json ItemJson(const TimeItem& item) {
  Json json = {{"name", item.name},
               {"calls", item.calls},
               {"cpu_total_ms", Ms(static_cast<double>(item.total))},
               {"cpu_avg_ms", Ms(item.average())},
               {"cpu_max_ms", Ms(static_cast<double>(item.max))},
               {"cpu_min_ms", Ms(static_cast<double>(item.min))}};
  if (item.flops > 0) json["flops"] = item.flops;
  if (item.bytes > 0) json["bytes"] = item.bytes;
  if (!item.inner.empty()) {
    json["inner"] = Json::array();
    for (const TimeItem& inner : item.inner)
      json["inner"].push_back(ItemJson(inner));
  }
  return json;
}

Json ItemsJson(const std::vector<TimeItem>& items) {
  Json json = Json::array();
  std::vector<TimeItem> sorted = items;
  SortItems(SortKey::kCpuTotal, &sorted);
  for (const TimeItem& item : sorted) json.push_back(ItemJson(item));
  return json;
}

Json RowJson(const PerfRow& row) {
  return {{"avg", row.average},
          {"max", row.max},
          {"min", row.min},
          {"median", row.median}};
}

Json Perf(const PerfSummary& perf) {
  return {{"steps", perf.steps},
          {"left_out", perf.left_out},
          {"reader_ratio", perf.reader_ratio},
          {"reader_cost_s", RowJson(perf.reader)},
          {"batch_cost_s", RowJson(perf.batch)},
          {"ips", RowJson(perf.ips)},
          {"samples_per_s", perf.samples_per_s}};
}

Json CoverageJson(const Coverage& coverage) {
  const auto ms = [](int64_t ns) { return Ms(static_cast<double>(ns)); };
  return {{"steps_ms", ms(coverage.steps)},
          {"reading_ms", ms(coverage.reading)},
          {"operators_ms", ms(coverage.ops)},
          {"moves_ms", ms(coverage.moves)},
          {"rest_ms", ms(coverage.rest())}};
}

Json FactsJson(const ProfileTrace& trace) {
  Json json = Json::object();
  for (const auto& [name, value] : trace.facts) {
    double number = 0;
    if (absl::SimpleAtod(value, &number) && number == number)
      json[name] = number;
    else
      json[name] = value;
  }
  return json;
}

Json MemoryJson(const ProfileTrace& trace) {
  Json json = {{"plan_peak_bytes", trace.peak_bytes},
               {"alive_at_peak", Json::array()}};
  for (const TraceTensor& tensor : trace.peak)
    json["alive_at_peak"].push_back({{"name", tensor.name},
                                     {"bytes", tensor.bytes},
                                     {"made_by", tensor.from},
                                     {"last_used_by", tensor.to}});
  for (const TraceCounter& counter : trace.counters)
    if (counter.name == "resident memory" && !counter.points.empty())
      json["resident_mb"] = counter.points.back().second;
  return json;
}

Json SitesJson(const ProfileTrace& trace) {
  Json json = Json::array();
  for (const TraceSite& site : trace.sites) {
    if (!site.index.has_value()) continue;
    json.push_back({{"plan", site.plan.value_or(0)},
                    {"index", *site.index},
                    {"op", site.name},
                    {"output", site.output},
                    {"layer", site.layer},
                    {"implementation", site.implementation},
                    {"refusals", site.refusals},
                    {"flops", site.flops},
                    {"bytes_read", site.bytes_read},
                    {"bytes_written", site.bytes_written},
                    {"alive_bytes", site.alive_bytes}});
  }
  return json;
}

Json AdviceJson(const ProfileTrace& trace, const ProfileSummary& summary) {
  Json json = Json::array();
  for (const Advice& advice : Advise(trace, summary))
    json.push_back({{"topic", advice.topic},
                    {"evidence", advice.evidence},
                    {"text", advice.text},
                    {"share", advice.share}});
  return json;
}

Json Profile(const ProfileTrace& trace, const ProfileSummary& summary) {
  Json json = {{"producer", trace.producer},
               {"process", trace.process_name},
               {"first_step", trace.first_step},
               {"steps", summary.steps},
               {"lost_events", trace.lost()},
               {"facts", FactsJson(trace)},
               {"perf", Perf(PerfOfTrace(trace, summary))},
               {"overview", Json::array()}};
  for (const KindTime& kind : summary.kinds)
    json["overview"].push_back(
        {{"type", std::string(Name(kind.type))},
         {"calls", kind.calls},
         {"cpu_ms", Ms(static_cast<double>(kind.total))}});
  json["model"] = ItemsJson(summary.model);
  json["operators"] = ItemsJson(summary.operators.items);
  json["kernels"] = ItemsJson(summary.kernels);
  json["memory_manipulation"] = ItemsJson(summary.memory);
  json["user_defined"] = ItemsJson(summary.user.items);
  json["coverage"] = CoverageJson(summary.coverage);
  if (const auto roofline = RooflineOf(trace); roofline.has_value())
    json["roofline"] = {{"peak_gflops", roofline->gflops},
                        {"triad_gbytes", roofline->gbytes}};
  json["memory"] = MemoryJson(trace);
  json["advice"] = AdviceJson(trace, summary);
  json["ops"] = SitesJson(trace);
  return json;
}

// [site, thread, begin in us, duration in us, id] of each event.
Json EventsJson(const ProfileTrace& trace) {
  Json json = Json::array();
  for (const TraceEvent& event : trace.events) {
    if (json.size() >= kMostEvents) break;
    json.push_back({event.site, event.thread,
                    static_cast<double>(event.begin_ns) / 1e3,
                    static_cast<double>(event.duration()) / 1e3, event.id});
  }
  return json;
}

Json PageData(const ProfileTrace& trace, const ProfileSummary& summary) {
  Json json = Profile(trace, summary);
  json["threads"] = Json::array();
  for (const TraceThread& thread : trace.threads)
    json["threads"].push_back({{"name", thread.name}, {"lost", thread.lost}});
  json["sites"] = Json::array();
  for (const TraceSite& site : trace.sites)
    json["sites"].push_back({{"type", std::string(Name(site.type))},
                             {"name", site.name},
                             {"output", site.output},
                             {"layer", site.layer},
                             {"implementation", site.implementation},
                             {"plan", site.plan.value_or(-1)},
                             {"index", site.index.value_or(-1)},
                             {"flops", site.flops},
                             {"bytes", site.bytes_read + site.bytes_written},
                             {"alive", site.alive_bytes}});
  json["events"] = EventsJson(trace);
  json["events_in_all"] = trace.events.size();
  json["counters"] = Json::array();
  for (const TraceCounter& counter : trace.counters)
    json["counters"].push_back({{"name", counter.name},
                                {"unit", counter.unit},
                                {"points", counter.points}});
  return json;
}

}  // namespace

std::string ProfileJson(const ProfileTrace& trace,
                        const ProfileSummary& summary) {
  return Text(Profile(trace, summary));
}

std::string PerfJson(const PerfSummary& perf) { return Text(Perf(perf)); }

std::string ComparisonJson(const TraceComparison& comparison) {
  const auto row = [](const OpComparison& op) {
    Json json = {{"name", op.name},
                 {"before_ms", Ms(op.before)},
                 {"after_ms", Ms(op.after)},
                 {"in_both", op.in_both}};
    if (op.in_both) json["change"] = op.change();
    if (op.p.has_value()) json["p"] = *op.p;
    json["mark"] = op.mark();
    return json;
  };
  Json json = {{"steps_before", comparison.steps_before},
               {"steps_after", comparison.steps_after},
               {"enough_steps", comparison.enough},
               {"step", row(comparison.step)},
               {"ops", Json::array()}};
  for (const OpComparison& op : comparison.ops) json["ops"].push_back(row(op));
  return Text(json);
}

absl::Status WriteProfileReport(const std::string& path,
                                const ProfileTrace& trace,
                                const ProfileSummary& summary) {
  // A '<' in the data would end the script that holds them.
  const std::string data =
      absl::StrReplaceAll(Text(PageData(trace, summary)), {{"<", "\\u003c"}});
  return WriteFile(path, absl::StrReplaceAll(ReportFile("profile_page.html"),
                                             {{"/*DATA*/", data}}));
}

}  // namespace pd
