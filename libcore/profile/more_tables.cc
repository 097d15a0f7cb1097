// SPDX-License-Identifier: Apache-2.0
// The tables that PaddlePaddle's profiler does not have.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/profile/roofline.h"
#include "libcore/profile/tables.h"
#include "libcore/profile/text_table.h"
#include "libcore/profile/time_text.h"

namespace pd {
namespace {

std::string Percent(double part, double whole) {
  return absl::StrFormat("%.2f", whole > 0 ? part / whole * 100 : 0);
}

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.2f", static_cast<double>(bytes) / 1e6);
}

// Ops of a trace by plan and place; each once.
std::vector<const TraceSite*> OpsInOrder(const ProfileTrace& trace) {
  std::map<std::pair<int64_t, int64_t>, const TraceSite*> ops;
  for (const TraceSite& site : trace.sites)
    if (site.plan.has_value() && site.index.has_value())
      ops[{*site.plan, *site.index}] = &site;
  std::vector<const TraceSite*> out;
  for (const auto& [place, site] : ops) out.push_back(site);
  return out;
}

void AppendChoice(const TraceSite& site, std::string* out) {
  absl::StrAppend(out, "  ", site.name, site.output.empty() ? "" : " -> ",
                  site.output, ": ", site.implementation, "\n");
  for (const std::string& refusal : site.refusals)
    absl::StrAppend(out, "      refused by ", refusal, "\n");
}

}  // namespace

std::string CoverageText(const ProfileSummary& summary,
                         const std::string& unit) {
  const Coverage& coverage = summary.coverage;
  if (coverage.steps == 0) return "";
  TextTable table({30, 25, 25}, {false, false, false});
  table.Header({"Part of the steps", "CPU Time", "Ratio (%)"});
  const auto row = [&](const char* name, int64_t ns) {
    table.Row({name, TimeText(static_cast<double>(ns), unit),
               Percent(static_cast<double>(ns),
                       static_cast<double>(coverage.steps))});
  };
  row("ProfileStep", coverage.steps);
  row("  Waiting for data", coverage.reading);
  row("  Operators", coverage.ops);
  row("  Reorders and copies", coverage.moves);
  if (coverage.waiting > 0)
    row("  Waiting for other processes", coverage.waiting);
  row("  Not covered", coverage.rest());
  return table.Text("Coverage", unit, true) + "\n\n";
}

std::string RanksText(const ProfileSummary& summary, const std::string& unit) {
  if (summary.ranks.size() < 2) return "";
  TextTable table({5, 20, 14, 14, 14, 14, 14, 11},
                  {true, true, true, true, true, true, true, true});
  table.Header({"Rank", "Host", "ProfileStep", "Communication", "Computation",
                "Overlap", "Neither", "Hidden (%)"});
  for (const Distribution& rank : summary.ranks) {
    const auto time = [&](int64_t ns) {
      return TimeText(static_cast<double>(ns), unit);
    };
    const int64_t either = rank.communication + rank.computation - rank.overlap;
    table.Row({absl::StrCat(rank.rank), rank.host, time(rank.steps),
               time(rank.communication), time(rank.computation),
               time(rank.overlap), time(rank.steps - either),
               Percent(static_cast<double>(rank.overlap),
                       static_cast<double>(rank.communication))});
  }
  return table.Text("Ranks", unit, true) + "\n\n";
}

std::string RooflineText(const ProfileTrace& trace,
                         const ProfileSummary& summary,
                         const TableOptions& options) {
  const auto roofline = RooflineOf(trace);
  if (!roofline.has_value() || summary.operators.items.empty()) return "";
  TextTable table({30, 6, 12, 12, 12, 12, 12, 12},
                  {true, true, true, true, true, true, true, true});
  table.Header({"Name", "Calls", "CPU Total", "GFLOP/s", "GB/s", "FLOP/byte",
                "Attainable", "Reached (%)"});
  std::vector<TimeItem> items = summary.operators.items;
  SortItems(options.sorted_by, &items);
  for (const TimeItem& item : summary.memory)
    if (item.bytes > 0 && item.total > 0) items.push_back(item);
  for (const TimeItem& item : items) {
    const auto ns = static_cast<double>(std::max<int64_t>(item.total, 1));
    const auto flops = static_cast<double>(item.flops);
    const auto bytes = static_cast<double>(item.bytes);
    std::string attainable = "-", reached = "-";
    if (flops > 0 && bytes > 0) {
      const double most = roofline->Attainable(flops / bytes);
      attainable = absl::StrFormat("%.1f GF/s", most);
      reached = Percent(flops / ns, most);
    } else if (bytes > 0) {
      attainable = absl::StrFormat("%.1f GB/s", roofline->gbytes);
      reached = Percent(bytes / ns, roofline->gbytes);
    }
    table.Row(
        {item.name, absl::StrCat(item.calls),
         TimeText(static_cast<double>(item.total), options.time_unit),
         flops > 0 ? absl::StrFormat("%.2f", flops / ns) : "-",
         bytes > 0 ? absl::StrFormat("%.2f", bytes / ns) : "-",
         flops > 0 && bytes > 0 ? absl::StrFormat("%.2f", flops / bytes) : "-",
         attainable, reached});
  }
  return absl::StrCat(
      table.Text("Roofline", options.time_unit, true),
      absl::StrFormat(
          "Measured on this machine: %.1f GFLOP/s of float32 (two operations "
          "for each multiply-add), %.1f GB/s of memory (triad over %s MB).\n"
          "Bytes are those of the tensors that an op reads and writes; what a "
          "cache holds already comes faster than memory, so more than 100 %% "
          "can be reached.\n\n\n",
          roofline->gflops, roofline->gbytes,
          Megabytes(static_cast<int64_t>(roofline->triad_bytes))));
}

std::string MemoryText(const ProfileTrace& trace) {
  if (trace.peak_bytes == 0) return "";
  constexpr size_t kMost = 10;
  TextTable table({40, 12, 34, 34}, {true, true, true, true});
  table.Header({"Tensor alive at the peak", "MB", "Made by", "Last used by"});
  int64_t others = trace.peak_bytes;
  for (size_t i = 0; i < std::min(kMost, trace.peak.size()); ++i) {
    const TraceTensor& tensor = trace.peak[i];
    table.Row({tensor.name, Megabytes(tensor.bytes), tensor.from, tensor.to});
    others -= tensor.bytes;
  }
  if (others > 0) table.Row({"(others)", Megabytes(others), "", ""});
  double resident = 0;
  for (const TraceCounter& counter : trace.counters)
    if (counter.name == "resident memory")
      for (const auto& [at, value] : counter.points)
        resident = std::max(resident, value);
  return absl::StrCat(
      table.Text("Memory Summary", "", true),
      absl::StrFormat("The plan needs %s MB at its peak; the process held "
                      "%.2f MB in memory.\n\n\n",
                      Megabytes(trace.peak_bytes), resident));
}

std::string CountersText(const ProfileTrace& trace,
                         const ProfileSummary& summary) {
  TextTable table({40, 20, 20}, {true, true, true});
  table.Header({"Counter", "Total", "A step"});
  std::vector<std::string> unavailable;
  bool any = false;
  for (const auto& [name, text] : trace.facts) {
    absl::string_view shown = name;
    const bool counter = absl::ConsumePrefix(&shown, "counter ");
    if (!counter && !absl::StartsWith(name, "energy")) continue;
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) {
      unavailable.push_back(absl::StrCat(shown, ": ", text));
      continue;
    }
    any = true;
    const auto steps = static_cast<double>(std::max<int64_t>(summary.steps, 1));
    table.Row(
        {std::string(shown), text, absl::StrFormat("%.6g", value / steps)});
  }
  if (!any && unavailable.empty()) return "";
  std::string out = any ? table.Text("Counters", "", true) : "";
  for (const std::string& line : unavailable) absl::StrAppend(&out, line, "\n");
  return out + "\n\n";
}

std::string ExplainText(const ProfileTrace& trace) {
  std::string out = TextTable::Title(100, "Implementations");
  int64_t plan = -1;
  for (const TraceSite* site : OpsInOrder(trace)) {
    if (*site->plan != plan) {
      plan = *site->plan;
      absl::StrAppend(&out, "plan ", plan, "\n");
    }
    AppendChoice(*site, &out);
  }
  bool first = true;
  for (const TraceSite& site : trace.sites) {
    if (site.type != EventType::kOperatorInner || site.implementation.empty())
      continue;
    if (std::exchange(first, false))
      absl::StrAppend(&out, "bound when they run\n");
    AppendChoice(site, &out);
  }
  return out + "\n\n";
}

}  // namespace pd
