// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <tuple>

#include "absl/strings/str_format.h"
#include "libcore/base/dump_json.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kWidestTable = 20;  // classes of a whole table on screen
constexpr size_t kMostMistakes = 20;  // lines instead of a larger one

Json Rows(const ConfusionMatrix& m) {
  Json rows = Json::array();
  for (int64_t t = 0; t < m.classes(); ++t) {
    Json row = Json::array();
    for (int64_t p = 0; p < m.classes(); ++p) row.push_back(m.at(t, p));
    rows.push_back(std::move(row));
  }
  return rows;
}

void PrintTable(const std::string& name, const ConfusionMatrix& m,
                std::ostream& out) {
  int64_t largest = 1;
  for (int64_t t = 0; t < m.classes(); ++t)
    for (int64_t p = 0; p < m.classes(); ++p)
      largest = std::max(largest, m.at(t, p));
  const int width =
      std::max<int>(4, static_cast<int>(std::to_string(largest).size()) + 1);
  out << "\n" << name << " (rows: true class, columns: predicted)\n     ";
  for (int64_t p = 0; p < m.classes(); ++p)
    out << absl::StrFormat("%*d", width, p);
  out << "\n";
  for (int64_t t = 0; t < m.classes(); ++t) {
    out << absl::StrFormat("%4d ", t);
    for (int64_t p = 0; p < m.classes(); ++p)
      out << (m.at(t, p) == 0 ? absl::StrFormat("%*s", width, ".")
                              : absl::StrFormat("%*d", width, m.at(t, p)));
    out << "\n";
  }
}

// Of many classes: which are taken for which most often.
void PrintMistakes(const std::string& name, const ConfusionMatrix& m,
                   std::ostream& out) {
  std::vector<std::tuple<int64_t, int64_t, int64_t>> mistakes;
  int64_t all = 0, wrong = 0;
  for (int64_t t = 0; t < m.classes(); ++t)
    for (int64_t p = 0; p < m.classes(); ++p) {
      all += m.at(t, p);
      if (p == t || m.at(t, p) == 0) continue;
      wrong += m.at(t, p);
      mistakes.emplace_back(-m.at(t, p), t, p);
    }
  std::sort(mistakes.begin(), mistakes.end());
  const size_t shown = std::min(kMostMistakes, mistakes.size());
  out << "\n"
      << name
      << absl::StrFormat(" of %d classes: %d of %d are wrong", m.classes(),
                         wrong, all);
  if (shown < mistakes.size())
    out << absl::StrFormat("; the %d commonest mistakes", shown);
  if (shown > 0) out << "\n   true  predicted  count  of true";
  out << "\n";
  for (size_t i = 0; i < shown; ++i) {
    const auto [count, truth, predicted] = mistakes[i];
    out << absl::StrFormat("%7d %10d %6d %7.1f%%\n", truth, predicted, -count,
                           -100.0 * static_cast<double>(count) /
                               static_cast<double>(m.Truths(truth)));
  }
}

// "confusion" is the first table; others have their own names.
void AddTables(const EvaluationResult& result, Json* line) {
  for (size_t i = 0; i < result.tables.size(); ++i)
    (*line)[i == 0 ? "confusion" : result.tables[i].first] =
        Rows(result.tables[i].second);
}

void PrintJson(const EvaluationResult& result,
               const std::vector<Judgement>& judgements, std::ostream& out) {
  Json line = {{"records", result.records}, {"seconds", result.seconds}};
  if (result.loss.has_value()) line["loss"] = *result.loss;
  for (const auto& [name, value] : result.metrics) line[name] = value;
  AddTables(result, &line);
  for (const Judgement& judgement : judgements)
    line["requirements"].push_back({{"require", judgement.requirement.text},
                                    {"name", judgement.requirement.name},
                                    {"value", judgement.value},
                                    {"met", judgement.met}});
  out << DumpJson(line) << "\n";
}

}  // namespace

void PrintEvaluation(const EvaluationResult& result,
                     const std::vector<Judgement>& judgements, bool json,
                     std::ostream& out) {
  if (json) return PrintJson(result, judgements, out);
  int width = 10;
  for (const auto& [name, value] : result.metrics)
    width = std::max(width, static_cast<int>(name.size()));
  out << absl::StrFormat("%-*s %d\n", width, "records", result.records);
  if (result.loss.has_value())
    out << absl::StrFormat("%-*s %.6f\n", width, "loss", *result.loss);
  for (const auto& [name, value] : result.metrics)
    out << absl::StrFormat("%-*s %.4f\n", width, name, value);
  for (const auto& [name, table] : result.tables)
    (table.classes() > kWidestTable ? PrintMistakes : PrintTable)(name, table,
                                                                  out);
  if (!judgements.empty()) out << "\n";
  for (const Judgement& judgement : judgements)
    out << (judgement.met ? "met    " : "missed ") << judgement.requirement.text
        << "\n";
}

}  // namespace pd
