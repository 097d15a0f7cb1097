// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/quant_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/file.h"

namespace pd {
namespace {

constexpr int kWidth = 360, kHeight = 90;
constexpr int kBars = 120;

constexpr char kHead[] =
    R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>quantization</title>
<style>
:root { color-scheme: light dark; --line: #8884; --bar: #4a7fb5; --mark: #c0392b; --weak: #888; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .9rem .2rem 0; text-align: right; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th { color: var(--weak); font-weight: 600; } th:first-child, td:first-child, .text { text-align: left; }
.error { background: linear-gradient(to right, var(--bar) var(--part), transparent 0) no-repeat left bottom / 100% 3px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; } figcaption { font-size: .85rem; overflow-wrap: anywhere; } figcaption small { color: var(--weak); }
svg { width: 100%; height: auto; border-bottom: 1px solid var(--line); }
rect { fill: var(--bar); } line { stroke: var(--mark); stroke-width: 1.5; }
</style></head><body>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Bars of log(1 + count) over |x|, and a line where the threshold is.
std::string Drawing(const Histogram& histogram, double threshold) {
  const auto& counts = histogram.counts();
  const size_t each = std::max<size_t>(1, counts.size() / kBars);
  std::vector<double> bars;
  for (size_t i = 0; i < counts.size(); i += each) {
    double sum = 0;
    for (size_t k = i; k < std::min(i + each, counts.size()); ++k)
      sum += static_cast<double>(counts[k]);
    bars.push_back(std::log1p(sum));
  }
  const double most =
      std::max(1e-9, *std::max_element(bars.begin(), bars.end()));
  const double step = static_cast<double>(kWidth) / bars.size();
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %d %d\" role=\"img\">",
                                    kWidth, kHeight);
  for (size_t i = 0; i < bars.size(); ++i) {
    const double height = bars[i] / most * (kHeight - 4);
    if (height <= 0) continue;
    absl::StrAppendFormat(
        &svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
        step * static_cast<double>(i), kHeight - height,
        std::max(step - 0.4, 0.4), height);
  }
  const double end =
      histogram.low() + histogram.width() * static_cast<double>(counts.size());
  const double at = (threshold - histogram.low()) / (end - histogram.low());
  absl::StrAppendFormat(
      &svg, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/></svg>",
      std::min(at, 0.999) * kWidth, std::min(at, 0.999) * kWidth, kHeight);
  return svg;
}

void AddFacts(const QuantReport& report, std::string* page) {
  absl::StrAppend(page, "<h1>", Escaped(report.model),
                  " in 8 bits</h1><table>");
  const Quantization& q = report.result->quantization;
  auto facts = report.facts;
  facts.insert(
      facts.begin(),
      {{"thresholds", q.algorithm},
       {"calibrated on", absl::StrFormat("%d records in %d batches",
                                         report.result->calibration.records,
                                         report.result->calibration.batches)},
       {"operators in integers", absl::StrCat(q.plan.ops.size())}});
  for (const auto& [name, value] : facts)
    absl::StrAppend(page, "<tr><td>", Escaped(name), "</td><td class=\"text\">",
                    Escaped(value), "</td></tr>");
  absl::StrAppend(page, "</table>");
}

void AddErrors(const QuantReport& report, std::string* page) {
  if (report.errors == nullptr || report.errors->empty()) return;
  absl::StrAppend(
      page,
      "<h2>Error of every layer</h2><p>Of what a layer gives, with all "
      "that was quantized before it: the ratio of signal to noise, and "
      "the cosine of the angle between both.</p>"
      "<table><tr><th>result</th><th>SQNR, dB</th><th>cosine</th></tr>");
  for (const ValueError& e : *report.errors) {
    const double part = std::min(std::max(e.Sqnr(), 0.0), 60.0) / 60 * 100;
    absl::StrAppendFormat(
        page,
        "<tr><td>%s</td><td class=\"error\" style=\"--part: %.0f%%\">%.2f</td>"
        "<td>%.6f</td></tr>",
        Escaped(e.variable), part, std::min(e.Sqnr(), 999.0), e.Cosine());
  }
  absl::StrAppend(page, "</table>");
}

void AddSensitivities(const QuantReport& report, std::string* page) {
  if (report.sensitivities == nullptr || report.sensitivities->empty()) return;
  absl::StrAppend(page,
                  "<h2>Quantized alone</h2><table><tr><th>operator</th><th "
                  "class=\"text\">kind</th><th>SQNR of the outputs, "
                  "dB</th></tr>");
  for (const Sensitivity& s : *report.sensitivities)
    absl::StrAppendFormat(
        page, "<tr><td>%s</td><td class=\"text\">%s</td><td>%.2f</td></tr>",
        Escaped(s.output), Escaped(s.type), std::min(s.sqnr, 999.0));
  absl::StrAppend(page, "</table>");
}

void AddLeft(const QuantReport& report, std::string* page) {
  const auto& left = report.result->quantization.plan.left;
  if (left.empty()) return;
  absl::StrAppend(page,
                  "<h2>Left in floating point</h2><table><tr><th>operator</th>"
                  "<th class=\"text\">kind</th><th "
                  "class=\"text\">why</th></tr>");
  for (const FloatOp& op : left)
    absl::StrAppend(page, "<tr><td>", Escaped(op.output),
                    "</td><td class=\"text\">", Escaped(op.type),
                    "</td><td class=\"text\">", Escaped(op.why), "</td></tr>");
  absl::StrAppend(page, "</table>");
}

void AddHistograms(const QuantReport& report, std::string* page) {
  absl::StrAppend(page,
                  "<h2>Activations</h2><p>How often each size |x| came by, on "
                  "a logarithmic scale; the line is the threshold, which 127 "
                  "stands for.</p><div class=\"grid\">");
  const auto& variables = report.result->calibration.variables;
  for (const std::string& name : report.result->quantization.plan.observed) {
    const auto it = variables.find(name);
    if (it == variables.end() || !it->second.histogram.has_value()) continue;
    const ActivationStats& stats = it->second;
    absl::StrAppend(page, "<figure>",
                    Drawing(*stats.histogram, stats.threshold));
    absl::StrAppendFormat(page,
                          "<figcaption>%s<br><small>%.4g to %.4g, threshold "
                          "%.4g</small></figcaption></figure>",
                          Escaped(name), stats.range.min, stats.range.max,
                          stats.threshold);
  }
  absl::StrAppend(page, "</div>");
}

}  // namespace

std::string QuantReportPage(const QuantReport& report) {
  std::string page = kHead;
  AddFacts(report, &page);
  AddErrors(report, &page);
  AddSensitivities(report, &page);
  AddLeft(report, &page);
  AddHistograms(report, &page);
  absl::StrAppend(&page, "</body></html>\n");
  return page;
}

absl::Status WriteQuantReport(const std::string& path,
                              const QuantReport& report) {
  return WriteFile(path, QuantReportPage(report));
}

}  // namespace pd
