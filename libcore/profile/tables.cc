// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's eight summaries. Widths, notes and the numbers' forms are its.
#include "libcore/profile/tables.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/profile/text_table.h"
#include "libcore/profile/time_text.h"

namespace pd {
namespace {

constexpr char kCpuHeader[] = "CPU Total / Avg / Max / Min / Ratio(%)";
constexpr char kGpuHeader[] = "GPU Total / Avg / Max / Min / Ratio(%)";
constexpr size_t kNameWidth = 52, kTimesWidth = 40, kCallsWidth = 6;

std::string Percent(double ratio) {
  return absl::StrFormat("%.2f", ratio * 100);
}

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Times(const TimeItem& item, const std::string& unit, double ratio) {
  return absl::StrCat(TimeText(static_cast<double>(item.total), unit), " / ",
                      TimeText(item.average(), unit), " / ",
                      TimeText(static_cast<double>(item.max), unit), " / ",
                      TimeText(static_cast<double>(item.min), unit), " / ",
                      Percent(ratio));
}

// `whole` is the time on a GPU that the ratio is of.
std::string GpuTimes(const TimeItem::Gpu& gpu, const std::string& unit,
                     int64_t whole) {
  return absl::StrCat(TimeText(static_cast<double>(gpu.total), unit), " / ",
                      TimeText(gpu.average(), unit), " / ",
                      TimeText(static_cast<double>(gpu.max), unit), " / ",
                      TimeText(static_cast<double>(gpu.min), unit), " / ",
                      Percent(Ratio(gpu.total, whole)));
}

int64_t GpuTotal(const std::vector<TimeItem>& items) {
  int64_t total = 0;
  for (const TimeItem& item : items) total += item.gpu.total;
  return total;
}

std::string Cut(const std::string& name, size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 3) + "...";
}

std::string Closed(const TextTable& table, const char* note) {
  return absl::StrCat(note, std::string(table.width(), '-'), "\n\n\n");
}

std::string DeviceTable(const ProfileTrace& trace) {
  TextTable table({30, 20}, {false, false});
  table.Header({"Device", "Utilization (%)"});
  for (const auto& [row, fact] :
       {std::make_pair("CPU(Process)", "Process Cpu Utilization"),
        std::make_pair("CPU(System)", "System Cpu Utilization")}) {
    double value = 0;
    const bool known = absl::SimpleAtod(trace.Fact(fact), &value);
    table.Row({row, known ? Percent(value) : "-"});
  }
  return table.Text("Device Summary", "", true) +
         Closed(table,
                "Note:\nCPU(Process) Utilization = Current process CPU time "
                "over all cpu cores / elapsed time, so max utilization can be "
                "reached 100% * number of cpu cores.\n"
                "CPU(System) Utilization = All processes CPU time over all cpu "
                "cores(busy time) / (busy time + idle time).\n"
                "GPU Utilization = Current process GPU time / elapsed time.\n");
}

std::string OverviewTable(const ProfileSummary& summary,
                          const std::string& unit) {
  TextTable table({25, 25, 25, 25}, {false, false, false, false});
  table.Header({"Event Type", "Calls", "CPU Time", "Ratio (%)"});
  // Phases are what the Model Summary has: the outermost ones.
  const auto model = [&](EventType type) -> const TimeItem* {
    for (const TimeItem& item : summary.model)
      if (item.name == Name(type)) return &item;
    return nullptr;
  };
  struct Row {
    std::string name;
    int64_t calls, total;
  };
  std::vector<Row> rows;
  for (const KindTime& kind : summary.kinds) {
    if (kind.type == EventType::kCommunication || kind.on_gpu) continue;
    const TimeItem* item = model(kind.type);
    rows.push_back({std::string(Name(kind.type)),
                    item != nullptr ? item->calls : kind.calls,
                    item != nullptr ? item->total : kind.total});
  }
  if (summary.communication_calls > 0)
    rows.push_back(
        {"Communication", summary.communication_calls, summary.communication});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    const bool first = a.name == "ProfileStep";
    return first != (b.name == "ProfileStep") ? first : a.total > b.total;
  });
  for (const Row& row : rows)
    table.Row({absl::StrCat(row.name == "ProfileStep" ? "" : "  ", row.name),
               absl::StrCat(row.calls),
               TimeText(static_cast<double>(row.total), unit),
               Percent(Ratio(row.total, summary.step_time))});
  table.SecondHeader({"", "Calls", "GPU Time", "Ratio (%)"});
  for (const KindTime& kind : summary.kinds)
    if (kind.on_gpu)
      table.Row({absl::StrCat("  ", Name(kind.type)), absl::StrCat(kind.calls),
                 TimeText(static_cast<double>(kind.total), unit),
                 Percent(Ratio(kind.total, summary.step_time))});
  return table.Text("Overview Summary", unit, true) +
         Closed(
             table,
             "Note:\nIn this table, We sum up all collected events in terms of "
             "event type.\n"
             "The time of events collected on host are presented as CPU Time, "
             "and as GPU Time if on device.\n"
             "Events with different types may overlap or inclusion, e.g. "
             "Operator includes OperatorInner, so the sum of ratios is not "
             "100%.\n"
             "The time of events in the same type with overlap will not "
             "calculate twice, and all time is summed after merged.\n"
             "Example:\n"
             "Thread 1:\n"
             "  Operator: |___________|     |__________|\n"
             "Thread 2:\n"
             "  Operator:   |____________|     |___|\n"
             "After merged:\n"
             "  Result:   |______________|  |__________|\n\n");
}

std::string ModelTable(const ProfileSummary& summary, const std::string& unit) {
  if (summary.model.size() < 2) return "";
  TextTable table({15, kCallsWidth, kTimesWidth, kTimesWidth},
                  {false, true, true, true});
  table.Header({"Name", "Calls", kCpuHeader, kGpuHeader});
  int64_t others = summary.step_time;
  const int64_t on_gpu = summary.model[0].gpu.total;  // of ProfileStep
  for (const TimeItem& item : summary.model) {
    const bool step = item.name == "ProfileStep";
    table.Row({absl::StrCat(step ? "" : "  ", item.name),
               absl::StrCat(item.calls),
               Times(item, unit, Ratio(item.total, summary.step_time)),
               GpuTimes(item.gpu, unit, on_gpu)});
    if (!step) others -= item.total;
  }
  const double ratio =
      static_cast<double>(others) /
      static_cast<double>(std::max<int64_t>(summary.step_time, 1));
  table.Row({"  Others", "-",
             absl::StrCat(TimeText(static_cast<double>(others), unit),
                          " / - / - / - / ", Percent(ratio)),
             "0.00 / - / - / - / 0.00"});
  return table.Text("Model Summary", unit, true) +
         Closed(table,
                "Note:\nIn this table, GPU time is the sum of all device(GPU) "
                "events called in the phase.\n"
                "Unlike overview summary, if two device(GPU) events execute on "
                "different streams with overlap time, we sum them directly "
                "here.\n\n");
}

// PaddlePaddle counts the kernels of a GPU alone as computation, and all of the
// trace.
std::string DistributedTable(const ProfileTrace& trace,
                             const ProfileSummary& summary,
                             const std::string& unit) {
  if (summary.communication_calls == 0) return "";
  TextTable table({25, 25, 25}, {false, false, false});
  table.Header({"Name", "Total Time", "Ratio (%)"});
  const auto row = [&](const char* name, int64_t ns) {
    table.Row({name, TimeText(static_cast<double>(ns), unit),
               Percent(Ratio(ns, summary.step_time))});
  };
  row("ProfileStep", summary.step_time);
  Distribution times = summary.ranks[0];
  if (trace.producer != "pdkit") {
    times = Distribution();
    times.communication = summary.communication;
  }
  row("  Communication", times.communication);
  row("  Computation", times.computation);
  row("  Overlap", times.overlap);
  return table.Text("Distribution Summary", unit, true) +
         Closed(table,
                "Note:\nCommunication time: Communication Event time, "
                "Communication Op time and its kernel time on gpu.\n"
                "Computation time: Kernel time, except kernels belong to "
                "communication(nccl kernels).\n"
                "Overlap time: Communication time intersects with computation "
                "time.\n"
                "Example:\n"
                "Communication:\n"
                "  CPU:              |_________________|\n"
                "  GPU:                                  |______________|\n"
                "  Total:            |_________________| |______________|\n"
                "Computation time(Kernel):\n"
                "  GPU:         |________________|\n"
                "Overlap time:       |___________|\n\n");
}

std::string OperatorTable(const ProfileSummary& summary,
                          const TableOptions& options) {
  if (summary.operators.items.empty()) return "";
  const std::string& unit = options.time_unit;
  TextTable table({kNameWidth, kCallsWidth, kTimesWidth, kTimesWidth},
                  {false, true, true, true});
  table.Header({"Name", "Calls", kCpuHeader, kGpuHeader});
  std::vector<ThreadItems> groups = {summary.operators};
  if (options.thread_sep) groups = summary.by_thread;
  for (ThreadItems& group : groups) {
    table.Heading(absl::StrCat("Thread: ", group.thread));
    SortItems(options.sorted_by, &group.items);
    int64_t total = 0;
    for (const TimeItem& item : group.items) total += item.total;
    const int64_t on_gpu = GpuTotal(group.items);
    for (const TimeItem& item : group.items) {
      table.Row({Cut(item.name, kNameWidth), absl::StrCat(item.calls),
                 Times(item, unit, Ratio(item.total, total)),
                 GpuTimes(item.gpu, unit, on_gpu)});
      if (!options.op_detail) continue;
      for (const TimeItem& inner : item.inner)
        table.Row({absl::StrCat("  ", Cut(inner.name, kNameWidth - 2)),
                   absl::StrCat(inner.calls),
                   Times(inner, unit, Ratio(inner.total, item.total)),
                   GpuTimes(inner.gpu, unit, item.gpu.total)});
    }
  }
  return table.Text("Operator Summary", unit, true) + "\n\n";
}

// Of the CPU, implementations are what kernels are on a GPU.
std::string KernelTable(const ProfileSummary& summary,
                        const TableOptions& options) {
  if (summary.kernels.empty()) return "";
  constexpr size_t kWidth = 90;
  const int64_t on_gpu = GpuTotal(summary.kernels);
  std::vector<size_t> widths = {kWidth, kCallsWidth, kTimesWidth};
  if (on_gpu > 0) widths.push_back(kTimesWidth);
  TextTable table(std::move(widths), {false, true, true, true});
  std::vector<std::string> header = {"Name", "Calls", kCpuHeader};
  if (on_gpu > 0) header.push_back(kGpuHeader);
  table.Header(std::move(header));
  std::vector<TimeItem> kernels = summary.kernels;
  const bool by_default = options.sorted_by == SortKey::kCpuTotal;
  SortItems(on_gpu > 0 && by_default ? SortKey::kGpuTotal : options.sorted_by,
            &kernels);
  for (const TimeItem& item : kernels) {
    std::vector<std::string> row = {
        Cut(item.name, kWidth), absl::StrCat(item.calls),
        Times(item, options.time_unit, Ratio(item.total, summary.step_time))};
    if (on_gpu > 0)
      row.push_back(GpuTimes(item.gpu, options.time_unit, on_gpu));
    table.Row(std::move(row));
  }
  return table.Text("Kernel Summary", options.time_unit, true) + "\n\n";
}

std::string MemoryTable(const ProfileSummary& summary,
                        const std::string& unit) {
  if (summary.memory.empty()) return "";
  TextTable table({0, kCallsWidth, kTimesWidth, kTimesWidth},
                  {true, true, true, true});
  table.Header({"Name", "Calls", kCpuHeader, kGpuHeader});
  for (const TimeItem& item : summary.memory)
    table.Row({item.name, absl::StrCat(item.calls),
               Times(item, unit, Ratio(item.total, summary.step_time)),
               GpuTimes(item.gpu, unit, GpuTotal(summary.memory))});
  return table.Text("Memory Manipulation Summary", unit, true) + "\n\n";
}

std::string UserTable(const ProfileSummary& summary,
                      const TableOptions& options) {
  if (summary.user.items.empty()) return "";
  TextTable table({0, kCallsWidth, kTimesWidth, kTimesWidth},
                  {true, true, true, true});
  table.Header({"Name", "Calls", kCpuHeader, kGpuHeader});
  std::vector<ThreadItems> groups = {summary.user};
  if (options.thread_sep) groups = summary.user_by_thread;
  for (ThreadItems& group : groups) {
    table.Heading(absl::StrCat("Thread: ", group.thread));
    SortItems(options.sorted_by, &group.items);
    for (const TimeItem& item : group.items)
      table.Row(
          {item.name, absl::StrCat(item.calls),
           Times(item, options.time_unit, Ratio(item.total, summary.step_time)),
           GpuTimes(item.gpu, options.time_unit, 0)});
  }
  return table.Text("UserDefined Summary", options.time_unit, false) + "\n\n";
}

}  // namespace

std::string PaddleTables(const ProfileTrace& trace,
                         const ProfileSummary& summary,
                         const TableOptions& options) {
  std::string text = DeviceTable(trace);
  if (summary.step_time == 0) return text;
  absl::StrAppend(
      &text, OverviewTable(summary, options.time_unit),
      ModelTable(summary, options.time_unit),
      DistributedTable(trace, summary, options.time_unit),
      OperatorTable(summary, options), KernelTable(summary, options),
      MemoryTable(summary, options.time_unit), UserTable(summary, options));
  return text;
}

}  // namespace pd
