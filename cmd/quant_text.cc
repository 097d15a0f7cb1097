// SPDX-License-Identifier: Apache-2.0
#include "cmd/quant_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/dump_json.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostSqnr = 999;  // in place of an infinite one

double Shown(double sqnr) { return std::min(sqnr, kMostSqnr); }

int WidthOf(const QuantSummary& summary) {
  size_t width = 10;
  for (const std::string& name : summary.result.quantization.plan.observed)
    width = std::max(width, name.size());
  return static_cast<int>(std::min<size_t>(width, 48));
}

void PrintThresholds(const QuantSummary& summary, std::ostream& out) {
  const Calibration& calibration = summary.result.calibration;
  if (calibration.variables.empty()) return;
  const int width = WidthOf(summary);
  const auto& used = summary.result.quantization.thresholds;
  out << absl::StrFormat("%-*s %12s %12s %12s %12s\n", width, "activation",
                         "least", "greatest", "threshold", "127 is");
  for (const std::string& name : summary.result.quantization.plan.observed) {
    const auto it = calibration.variables.find(name);
    if (it == calibration.variables.end()) continue;
    // An op's output that a batch norm was folded into has no scale of its own.
    const auto scale = used.find(name);
    out << absl::StrFormat(
        "%-*s %12.6g %12.6g %12.6g %12s\n", width, name, it->second.range.min,
        it->second.range.max, it->second.threshold,
        scale == used.end() ? "-" : absl::StrFormat("%.6g", scale->second));
  }
}

void PrintErrors(const QuantSummary& summary, std::ostream& out) {
  if (summary.errors.empty()) return;
  const int width = WidthOf(summary);
  out << absl::StrFormat("\n%-*s %10s %10s\n", width, "result", "SQNR dB",
                         "cosine");
  for (const ValueError& e : summary.errors)
    out << absl::StrFormat("%-*s %10.2f %10.6f\n", width, e.variable,
                           Shown(e.Sqnr()), e.Cosine());
}

void PrintRoundings(const QuantSummary& summary, std::ostream& out) {
  if (summary.result.roundings.empty()) return;
  const int width = WidthOf(summary);
  out << absl::StrFormat("\n%-*s %14s %14s %8s\n", width,
                         "mean squared error by", "nearest", "learned",
                         "ratio");
  for (const RoundingGain& g : summary.result.roundings)
    out << absl::StrFormat("%-*s %14.6g %14.6g %8.3f\n", width, g.weight,
                           g.nearest, g.learned,
                           g.nearest > 0 ? g.learned / g.nearest : 1);
}

void PrintSensitivities(const QuantSummary& summary, std::ostream& out) {
  if (summary.sensitivities.empty()) return;
  const int width = WidthOf(summary);
  out << absl::StrFormat("\n%-*s %-18s %s\n", width, "quantized alone", "",
                         "SQNR dB of the outputs");
  for (const Sensitivity& s : summary.sensitivities)
    out << absl::StrFormat("%-*s %-18s %10.2f\n", width, s.output, s.type,
                           Shown(s.sqnr));
  if (summary.search.empty()) return;
  out << absl::StrFormat("\n%-13s %10s %12s\n", "left in float", summary.metric,
                         "points worse");
  for (const SearchStep& step : summary.search)
    out << absl::StrFormat("%13d %10.6g %12.2f\n", step.left, step.metric,
                           step.drop);
}

void AddSearch(const QuantSummary& summary, Json* object) {
  if (summary.sensitivities.empty()) return;
  (*object)["sensitivity"] = Json::array();
  for (const Sensitivity& s : summary.sensitivities)
    (*object)["sensitivity"].push_back(
        {{"type", s.type}, {"output", s.output}, {"sqnr_db", Shown(s.sqnr)}});
  (*object)["search"] = Json::array();
  for (const SearchStep& step : summary.search)
    (*object)["search"].push_back({{"left", step.left},
                                   {"metric", step.metric},
                                   {"drop_points", step.drop}});
}

Json ThresholdsOf(const QuantSummary& summary) {
  const Quantization& q = summary.result.quantization;
  Json all = Json::object();
  for (const auto& [name, stats] : summary.result.calibration.variables) {
    if (q.algorithm == "min_max")
      all[name] = {stats.range.min, stats.range.max};
    else
      all[name] = stats.threshold;
  }
  return all;
}

}  // namespace

void PrintQuantSummary(const QuantSummary& summary, std::ostream& out) {
  PrintThresholds(summary, out);
  PrintRoundings(summary, out);
  PrintErrors(summary, out);
  PrintSensitivities(summary, out);
  const Quantization& q = summary.result.quantization;
  if (!q.plan.left.empty()) {
    out << "\nleft in floating point:\n";
    for (const FloatOp& op : q.plan.left)
      out << "  " << op.type << " '" << op.output << "': " << op.why << "\n";
  }
  out << "\nwrote " << summary.out << " (" << summary.to
      << "): " << q.plan.ops.size() << " of " << summary.operators
      << " operators in integers, parameters " << summary.bytes_before << " -> "
      << summary.bytes_after << " bytes"
      << absl::StrFormat(" (%.1f %%)\n",
                         100.0 * static_cast<double>(summary.bytes_after) /
                             static_cast<double>(
                                 std::max<size_t>(summary.bytes_before, 1)));
  if (summary.result.calibration.records > 0)
    out << absl::StrFormat("calibrated on %d records in %d batches in %.1f s\n",
                           summary.result.calibration.records,
                           summary.result.calibration.batches,
                           summary.calibration_s);
  if (summary.latency_batch > 0)
    out << absl::StrFormat("latency %.3f -> %.3f ms (batch %d, %.2f x)\n",
                           summary.latency_before, summary.latency_after,
                           summary.latency_batch,
                           summary.latency_before / summary.latency_after);
  if (!summary.metric.empty())
    out << absl::StrFormat("%s %.6g -> %.6g (%.2f points %s)\n", summary.metric,
                           summary.before, summary.after,
                           std::fabs(summary.drop),
                           summary.drop > 0 ? "worse" : "better");
}

void PrintQuantSearch(const QuantSummary& summary, bool json,
                      std::ostream& out) {
  if (!json) return PrintSensitivities(summary, out);
  Json object = {{"model", summary.model}};
  AddSearch(summary, &object);
  out << DumpJson(object) << "\n";
}

void PrintQuantJson(const QuantSummary& summary, std::ostream& out) {
  const Quantization& q = summary.result.quantization;
  Json object = {{"model", summary.model},
                 {"out", summary.out},
                 {"to", summary.to},
                 {"algo", q.algorithm},
                 {"records", summary.result.calibration.records},
                 {"batches", summary.result.calibration.batches},
                 {"calibration_s", summary.calibration_s},
                 {"operators", summary.operators},
                 {"parameter_bytes_before", summary.bytes_before},
                 {"parameter_bytes", summary.bytes_after}};
  object["quantized"] = Json::array();
  for (const QuantOp& op : q.plan.ops)
    object["quantized"].push_back(
        {{"output", op.output}, {"weight", op.weight}});
  object["float"] = Json::array();
  for (const FloatOp& op : q.plan.left)
    object["float"].push_back(
        {{"type", op.type}, {"output", op.output}, {"why", op.why}});
  object["activations"] = ThresholdsOf(summary);
  object["scales"] = Json::object();
  for (const auto& [name, threshold] : q.thresholds)
    object["scales"][name] = threshold;
  object["weights"] = Json::object();
  for (const auto& [name, weight] : summary.weights)
    object["weights"][name] = weight.scales;
  for (const auto& [name, weight] : q.weights)
    object["scales"][name] = weight.scales;
  object["errors"] = Json::array();
  for (const ValueError& e : summary.errors)
    object["errors"].push_back({{"output", e.variable},
                                {"sqnr_db", Shown(e.Sqnr())},
                                {"cosine", e.Cosine()}});
  for (const RoundingGain& g : summary.result.roundings)
    object["roundings"].push_back(
        {{"weight", g.weight}, {"nearest", g.nearest}, {"learned", g.learned}});
  AddSearch(summary, &object);
  if (summary.latency_batch > 0)
    object["latency"] = {{"batch", summary.latency_batch},
                         {"before_ms", summary.latency_before},
                         {"after_ms", summary.latency_after}};
  if (!summary.metric.empty())
    object["metric"] = {{"name", summary.metric},
                        {"before", summary.before},
                        {"after", summary.after},
                        {"drop_points", summary.drop}};
  out << DumpJson(object) << "\n";
}

}  // namespace pd
