// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/perf_summary.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pd {
namespace {

constexpr size_t kWidth = 100;  // of the title, as PaddlePaddle has it
constexpr size_t kCell = 15;

// Python's str.center.
std::string Centred(const std::string& text, size_t width) {
  if (text.size() >= width) return text;
  const size_t pad = width - text.size();
  const size_t left = pad / 2 + (pad & width & 1);
  return std::string(left, ' ') + text + std::string(pad - left, ' ');
}

std::string Line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells)
    absl::StrAppend(&line, " ", Centred(cell, kCell), " |");
  return line + "\n";
}

std::string Row(const char* name, const PerfRow& row) {
  return Line({name, absl::StrFormat("%.5f", row.average),
               absl::StrFormat("%.5f", row.max),
               absl::StrFormat("%.5f", row.min)});
}

}  // namespace

size_t WarmUpSteps(size_t steps) { return std::min<size_t>(10, steps / 2); }

PerfSummary SummarizePerf(const std::vector<StepCost>& steps, size_t first) {
  PerfSummary summary;
  first = std::min(first, steps.size());
  summary.left_out = static_cast<int64_t>(first);
  summary.steps = static_cast<int64_t>(steps.size() - first);
  if (summary.steps == 0) return summary;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  summary.reader.min = summary.batch.min = kNone;
  double reader = 0, batch = 0, records = 0;
  for (size_t i = first; i < steps.size(); ++i) {
    const StepCost& step = steps[i];
    reader += step.reader;
    batch += step.batch;
    records += static_cast<double>(step.records);
    summary.reader.max = std::max(summary.reader.max, step.reader);
    summary.reader.min = std::min(summary.reader.min, step.reader);
    summary.batch.max = std::max(summary.batch.max, step.batch);
    summary.batch.min = std::min(summary.batch.min, step.batch);
  }
  const auto n = static_cast<double>(summary.steps);
  summary.reader.average = reader / n;
  summary.batch.average = batch / n;
  summary.reader_ratio = batch > 0 ? reader / batch : 0;
  summary.samples_per_s = batch > 0 ? records / batch : 0;
  const auto rate = [](double seconds) {
    return seconds > 0 ? 1 / seconds : 0;
  };
  summary.ips = {rate(summary.batch.average), rate(summary.batch.min),
                 rate(summary.batch.max)};
  return summary;
}

PerfSummary PerfOfTrace(const ProfileTrace& trace,
                        const ProfileSummary& summary) {
  std::vector<StepCost> steps;
  for (size_t i = 0; i < summary.step_samples.size(); ++i)
    steps.push_back(
        {summary.reading_samples[i] * 1e-9, summary.step_samples[i] * 1e-9, 0});
  int64_t records = 0;
  if (!steps.empty() && absl::SimpleAtoi(trace.Fact("records"), &records))
    steps.front().records = records;
  return SummarizePerf(steps, 0);
}

std::string PerfText(const PerfSummary& summary, bool reader) {
  if (summary.steps == 0) return "";
  const std::string title = "Perf Summary";
  const size_t left = (kWidth - title.size()) / 2;
  std::string text = std::string(left, '=') + title +
                     std::string(kWidth - title.size() - left, '=') + "\n";
  if (reader)
    absl::StrAppendFormat(&text, "Reader Ratio: %.3f%%\n",
                          summary.reader_ratio * 100);
  text += "Time Unit: s, IPS Unit: steps/s\n";
  text += Line({"", "avg", "max", "min"});
  if (reader) text += Row("reader_cost", summary.reader);
  text += Row("batch_cost", summary.batch);
  text += Row("ips", summary.ips);
  absl::StrAppendFormat(&text, "%.5g samples/s over %d steps",
                        summary.samples_per_s, summary.steps);
  if (summary.left_out > 0)
    absl::StrAppendFormat(&text, "; the %d before them are left out",
                          summary.left_out);
  text += "\n";
  return text;
}

}  // namespace pd
