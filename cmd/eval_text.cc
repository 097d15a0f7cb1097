// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/dump_json.h"
#include "libcore/data/dataset.h"

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

// Characters on screen, about: wide ones count as others.
int WidthOf(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string Padded(const std::string& text, int width, bool right) {
  const std::string blanks(
      static_cast<size_t>(std::max(0, width - WidthOf(text))), ' ');
  return right ? blanks + text : text + blanks;
}

// The classes as rows call them, and as columns do: by number where a name is
// too long to stand above a column of numbers.
struct Headings {
  std::vector<std::string> rows, columns;
  int row_width = 4, column_width = 4;
};

Headings HeadingsOf(const ClassTable& table) {
  constexpr int kWidestColumn = 10, kWidestLine = 110;
  Headings headings;
  const int64_t n = table.counts.classes();
  int widest = 0;
  for (int64_t c = 0; c < n; ++c) {
    headings.rows.push_back(ClassName(table.classes, c));
    widest = std::max(widest, WidthOf(headings.rows.back()));
  }
  const bool named = widest <= kWidestColumn &&
                     (widest + 1) * static_cast<int>(n) <= kWidestLine;
  for (int64_t c = 0; c < n; ++c) {
    headings.columns.push_back(named ? headings.rows[static_cast<size_t>(c)]
                                     : std::to_string(c));
    if (!named && c < static_cast<int64_t>(table.classes.size()))
      headings.rows[static_cast<size_t>(c)] =
          absl::StrCat(c, " ", headings.rows[static_cast<size_t>(c)]);
  }
  for (const std::string& row : headings.rows)
    headings.row_width = std::max(headings.row_width, WidthOf(row));
  for (const std::string& column : headings.columns)
    headings.column_width =
        std::max(headings.column_width, WidthOf(column) + 1);
  return headings;
}

void PrintTable(const ClassTable& table, std::ostream& out) {
  const ConfusionMatrix& m = table.counts;
  int64_t largest = 1;
  for (int64_t t = 0; t < m.classes(); ++t)
    for (int64_t p = 0; p < m.classes(); ++p)
      largest = std::max(largest, m.at(t, p));
  const Headings headings = HeadingsOf(table);
  const int width =
      std::max<int>(headings.column_width,
                    static_cast<int>(std::to_string(largest).size()) + 1);
  out << "\n"
      << table.name << " (rows: true class, columns: predicted)\n"
      << std::string(static_cast<size_t>(headings.row_width) + 1, ' ');
  for (const std::string& column : headings.columns)
    out << Padded(column, width, true);
  out << "\n";
  for (int64_t t = 0; t < m.classes(); ++t) {
    out << Padded(headings.rows[static_cast<size_t>(t)], headings.row_width,
                  table.classes.empty())
        << " ";
    for (int64_t p = 0; p < m.classes(); ++p)
      out << (m.at(t, p) == 0 ? absl::StrFormat("%*s", width, ".")
                              : absl::StrFormat("%*d", width, m.at(t, p)));
    out << "\n";
  }
}

// Of many classes: which are taken for which most often.
void PrintMistakes(const ClassTable& table, std::ostream& out) {
  const ConfusionMatrix& m = table.counts;
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
      << table.name
      << absl::StrFormat(" of %d classes: %d of %d are wrong", m.classes(),
                         wrong, all);
  if (shown < mistakes.size())
    out << absl::StrFormat("; the %d commonest mistakes", shown);
  int width = 10;
  for (size_t i = 0; i < shown; ++i)
    for (const int64_t c : {std::get<1>(mistakes[i]), std::get<2>(mistakes[i])})
      width = std::max(width, WidthOf(ClassName(table.classes, c)));
  if (shown > 0)
    out << "\n"
        << Padded("true", width, true) << " "
        << Padded("predicted", width, true) << "  count  of true";
  out << "\n";
  for (size_t i = 0; i < shown; ++i) {
    const auto [count, truth, predicted] = mistakes[i];
    out << Padded(ClassName(table.classes, truth), width, true) << " "
        << Padded(ClassName(table.classes, predicted), width, true)
        << absl::StrFormat(" %6d %7.1f%%\n", -count,
                           -100.0 * static_cast<double>(count) /
                               static_cast<double>(m.Truths(truth)));
  }
}

// "confusion" and "classes" are the first table's; others have their own names.
void AddTables(const EvaluationResult& result, Json* line) {
  for (size_t i = 0; i < result.tables.size(); ++i) {
    const ClassTable& table = result.tables[i];
    (*line)[i == 0 ? "confusion" : table.name] = Rows(table.counts);
    if (table.classes.empty()) continue;
    Json names = Json::array();
    for (int64_t c = 0; c < table.counts.classes(); ++c)
      names.push_back(ClassName(table.classes, c));
    (*line)[i == 0 ? "classes" : absl::StrCat(table.name, "_classes")] =
        std::move(names);
  }
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
  for (const ClassTable& table : result.tables)
    (table.counts.classes() > kWidestTable ? PrintMistakes : PrintTable)(table,
                                                                         out);
  if (!judgements.empty()) out << "\n";
  for (const Judgement& judgement : judgements)
    out << (judgement.met ? "met    " : "missed ") << judgement.requirement.text
        << "\n";
}

}  // namespace pd
