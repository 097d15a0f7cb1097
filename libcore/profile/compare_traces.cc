// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/compare_traces.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/profile/text_table.h"
#include "libcore/profile/time_text.h"

namespace pd {
namespace {

constexpr size_t kExact = 20;  // samples up to here are counted out

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// The share of all orders of n and m values whose U is at most `u`: counted by
// the recurrence on the largest value.
double ExactLower(size_t n, size_t m, size_t u) {
  // ways[i][k]: orders of i of the first and j of the second with U = k.
  const size_t most = n * m;
  std::vector<std::vector<double>> ways(n + 1,
                                        std::vector<double>(most + 1, 0));
  for (auto& row : ways) row[0] = 1;
  for (size_t j = 1; j <= m; ++j)
    for (size_t i = 1; i <= n; ++i)
      for (size_t k = most + 1; k-- > 0;)
        // The largest is of the first: it is above all j; or of the second.
        ways[i][k] += k >= j ? ways[i - 1][k - j] : 0;
  double below = 0, all = 0;
  for (size_t k = 0; k <= most; ++k) {
    all += ways[n][k];
    if (k <= u) below += ways[n][k];
  }
  return below / all;
}

OpComparison Compare(const std::string& name, const std::vector<double>* before,
                     const std::vector<double>* after) {
  OpComparison comparison;
  comparison.name = name;
  if (before != nullptr) comparison.before = Median(*before);
  if (after != nullptr) comparison.after = Median(*after);
  comparison.in_both = before != nullptr && after != nullptr;
  if (comparison.in_both) comparison.p = MannWhitney(*before, *after);
  return comparison;
}

}  // namespace

double MannWhitney(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<std::pair<double, bool>> all;
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(a.size()),
             m = static_cast<double>(b.size());
  double ranks = 0, ties = 0;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto equal = static_cast<double>(end - i);
    const double rank = static_cast<double>(i + end + 1) / 2;
    for (; i < end; ++i)
      if (all[i].second) ranks += rank;
    ties += equal * equal * equal - equal;
  }
  const double u = ranks - n * (n + 1) / 2;
  const double lower = std::min(u, n * m - u);
  if (ties == 0 && a.size() <= kExact && b.size() <= kExact)
    return std::min(
        1.0, 2 * ExactLower(a.size(), b.size(), static_cast<size_t>(lower)));
  const double total = n + m;
  const double variance =
      n * m / 12 * (total + 1 - ties / (total * (total - 1)));
  if (variance <= 0) return 1;
  const double z = std::max(0.0, n * m / 2 - lower - 0.5) / std::sqrt(variance);
  return std::min(1.0, std::erfc(z / std::sqrt(2.0)));
}

std::string OpComparison::mark() const {
  if (!p.has_value()) return "";
  return *p < 0.001 ? "***" : *p < 0.01 ? "**" : *p < 0.05 ? "*" : "";
}

TraceComparison CompareTraces(const ProfileSummary& before,
                              const ProfileSummary& after) {
  TraceComparison comparison;
  comparison.steps_before = before.step_samples.size();
  comparison.steps_after = after.step_samples.size();
  comparison.step =
      Compare("ProfileStep", &before.step_samples, &after.step_samples);
  // The smallest probability that samples of these sizes can have.
  double orders = 1;
  for (size_t i = 1; i <= comparison.steps_before; ++i)
    orders *= static_cast<double>(comparison.steps_after + i) /
              static_cast<double>(i);
  comparison.enough = 2 / orders < 0.05;
  for (const auto& [name, samples] : before.op_samples) {
    const auto other = after.op_samples.find(name);
    comparison.ops.push_back(
        Compare(name, &samples,
                other == after.op_samples.end() ? nullptr : &other->second));
  }
  for (const auto& [name, samples] : after.op_samples)
    if (before.op_samples.count(name) == 0)
      comparison.ops.push_back(Compare(name, nullptr, &samples));
  std::stable_sort(comparison.ops.begin(), comparison.ops.end(),
                   [](const OpComparison& a, const OpComparison& b) {
                     return std::fabs(a.after - a.before) >
                            std::fabs(b.after - b.before);
                   });
  return comparison;
}

std::string ComparisonText(const TraceComparison& comparison,
                           const std::string& unit) {
  TextTable table({52, 12, 12, 12, 10, 4},
                  {true, true, true, true, true, true});
  table.Header({"Name", "Before", "After", "Change (%)", "p", ""});
  const auto row = [&](const OpComparison& op, const std::string& indent) {
    const bool both = op.in_both;
    table.Row({indent + op.name,
               both || op.before > 0 ? TimeText(op.before, unit) : "-",
               both || op.after > 0 ? TimeText(op.after, unit) : "-",
               both ? absl::StrFormat("%+.2f", op.change() * 100) : "-",
               op.p.has_value() ? absl::StrFormat("%.4f", *op.p) : "-",
               op.mark()});
  };
  row(comparison.step, "");
  for (const OpComparison& op : comparison.ops) row(op, "  ");
  std::string text = table.Text("Comparison", unit, true);
  absl::StrAppend(
      &text, "Medians of a step's time over ", comparison.steps_before, " and ",
      comparison.steps_after,
      " steps. *, **, ***: a difference like this comes by chance in less than "
      "5, 1, 0.1 of 100 cases (Mann-Whitney).\n");
  if (!comparison.enough)
    text += "So few steps cannot tell chance from change: record more.\n";
  return text + "\n";
}

}  // namespace pd
