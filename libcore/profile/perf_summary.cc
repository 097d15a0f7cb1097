// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/perf_summary.h"

#include <algorithm>
#include <utility>

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

PerfRow RowOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  PerfRow row;
  for (const double value : values) row.average += value;
  row.average /= static_cast<double>(n);
  row.min = values.front();
  row.max = values.back();
  row.median =
      n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return row;
}

}  // namespace

size_t WarmUpSteps(size_t steps) { return std::min<size_t>(10, steps / 2); }

PerfSummary SummarizePerf(const std::vector<StepCost>& steps, size_t first) {
  PerfSummary summary;
  first = std::min(first, steps.size());
  summary.left_out = static_cast<int64_t>(first);
  summary.steps = static_cast<int64_t>(steps.size() - first);
  if (summary.steps == 0) return summary;
  std::vector<double> reader, batch;
  double records = 0;
  for (size_t i = first; i < steps.size(); ++i) {
    reader.push_back(steps[i].reader);
    batch.push_back(steps[i].batch);
    records += static_cast<double>(steps[i].records);
  }
  summary.reader = RowOf(std::move(reader));
  summary.batch = RowOf(std::move(batch));
  if (summary.batch.average > 0) {
    summary.reader_ratio = summary.reader.average / summary.batch.average;
    summary.samples_per_s =
        records / (summary.batch.average * static_cast<double>(summary.steps));
  }
  const auto rate = [](double seconds) {
    return seconds > 0 ? 1 / seconds : 0;
  };
  summary.ips = {rate(summary.batch.average), rate(summary.batch.min),
                 rate(summary.batch.max), rate(summary.batch.median)};
  return summary;
}

PerfSummary PerfOfTrace(const ProfileTrace& trace,
                        const ProfileSummary& summary) {
  std::vector<StepCost> steps;
  for (size_t i = 0; i < summary.step_samples.size(); ++i)
    steps.push_back({summary.reading_samples[i] * 1e-9,
                     summary.step_samples[i] * 1e-9, 0, true});
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
  if (summary.samples_per_s > 0)
    absl::StrAppendFormat(&text, "%.5g samples/s; ", summary.samples_per_s);
  absl::StrAppendFormat(&text, "median of a step %.5f s; %d steps",
                        summary.batch.median, summary.steps);
  if (summary.left_out > 0)
    absl::StrAppendFormat(&text, "; the %d before them are left out",
                          summary.left_out);
  text += "\n";
  return text;
}

}  // namespace pd
