// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/report/report_files.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 2000;     // of a curve
constexpr int64_t kMostCurves = 10;      // classes with curves of their own
constexpr int64_t kMostTableSide = 100;  // classes of a whole confusion table
constexpr size_t kMostConfusions = 30;   // pairs that are named

// Not more points than a screen shows; the last one stays.
template <typename T, typename Make>
Json Thinned(const std::vector<T>& points, const Make& make) {
  Json out = Json::array();
  const size_t every = points.size() / kMostPoints + 1;
  for (size_t i = 0; i < points.size(); ++i)
    if (i % every == 0 || i + 1 == points.size())
      out.push_back(make(points[i]));
  return out;
}

Json SeriesOf(const RunHistory& history) {
  Json out = Json::object();
  for (const auto& [tag, points] : history.series())
    out[tag] = Thinned(points, [](const RunHistory::Point& p) {
      return Json::array({p.step, p.value});
    });
  return out;
}

void AddPicture(const char* name, const Image& picture, Json* out) {
  if (picture.pixels.empty()) return;
  if (const auto png = EncodePng(picture); png.ok())
    (*out)[name] =
        absl::StrCat("data:image/png;base64,", absl::Base64Escape(*png));
}

Json RecordOf(const RecordView& view) {
  Json out = {{"record", view.record},
              {"truth", view.truth},
              {"answer", view.answer},
              {"wrong", view.wrong},
              {"confidence", view.confidence}};
  if (!view.place.empty()) out["place"] = view.place;
  AddPicture("picture", view.picture, &out);
  AddPicture("truth_mask", view.truth_mask, &out);
  AddPicture("answer_mask", view.answer_mask, &out);
  for (const auto& [name, text] : view.inputs)
    out["inputs"].push_back(Json::array({name, text}));
  return out;
}

Json RecordsOf(const std::vector<RecordView>& views) {
  Json out = Json::array();
  for (const RecordView& view : views) out.push_back(RecordOf(view));
  return out;
}

// The whole table where it can be seen; the most frequent mistakes always.
Json ConfusionOf(const EvaluationView& view) {
  const int64_t n = view.classes();
  Json out = {{"classes", Json::array()}, {"pairs", Json::array()}};
  struct Pair {
    int64_t truth, answer, count;
  };
  std::vector<Pair> pairs;
  for (int64_t t = 0; t < n; ++t) {
    out["classes"].push_back(view.ClassName(t));
    Json row = Json::array();
    for (int64_t a = 0; a < n; ++a) {
      const int64_t count = view.Confused(t, a);
      row.push_back(count);
      if (t != a && count > 0) pairs.push_back({t, a, count});
    }
    if (n <= kMostTableSide) out["counts"].push_back(std::move(row));
  }
  std::stable_sort(
      pairs.begin(), pairs.end(),
      [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kMostConfusions) pairs.resize(kMostConfusions);
  for (const Pair& pair : pairs)
    out["pairs"].push_back(Json::array({pair.truth, pair.answer, pair.count}));
  return out;
}

Json CurvesOf(const EvaluationView& view) {
  Json out = Json::array();
  for (const ClassCurve& curve : view.Curves(kMostCurves)) {
    const LogCurve& counts = curve.counts;
    Json recall = Json::array(), precision = Json::array(),
         false_positive = Json::array();
    for (size_t i = 0; i < counts.tp.size(); ++i) {
      recall.push_back(counts.Recall(i));
      precision.push_back(counts.tp[i] + counts.fp[i] > 0
                              ? Json(counts.Precision(i))
                              : Json(nullptr));
      false_positive.push_back(counts.FalsePositiveRate(i));
    }
    out.push_back({{"name", curve.name},
                   {"area", counts.Area()},
                   {"recall", std::move(recall)},
                   {"precision", std::move(precision)},
                   {"fpr", std::move(false_positive)}});
  }
  return out;
}

void AddView(const EvaluationView& view, Json* data) {
  if (view.records() == 0) return;
  Json& eval = (*data)["evaluation"];
  eval["records"] = view.records();
  const bool classes =
      view.kind() == AnswerKind::kClasses || view.kind() == AnswerKind::kYesNo;
  eval["classes"] = classes;
  eval["samples"] = RecordsOf(view.samples());
  eval["mistakes"] = RecordsOf(view.mistakes());
  if (classes && view.classes() <= EvaluationView::kMostClasses) {
    eval["confusion"] = ConfusionOf(view);
    eval["curves"] = CurvesOf(view);
  }
  for (const auto& [truth, answer] : view.points())
    eval["points"].push_back(Json::array({truth, answer}));
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[64];
  return std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &local) > 0
             ? text
             : "";
}

}  // namespace

std::string ReportData(const RunReport& report) {
  Json data = {{"title", report.title},
               {"run", report.run},
               {"state", report.state},
               {"made", Now()},
               {"step", report.step},
               {"epoch", report.epoch},
               {"epochs", report.epochs},
               {"job", report.job_text},
               {"peak_rss_mb", report.peak_rss_mb}};
  data["memory"] = {{"activations", report.memory.activations},
                    {"unshared", report.memory.unshared},
                    {"variables", report.memory.variables}};
  data["facts"] = Json::array();
  for (const auto& [name, value] : report.facts)
    data["facts"].push_back(Json::array({name, value}));
  data["series"] =
      report.history != nullptr ? SeriesOf(*report.history) : Json::object();
  data["times"] = Thinned(report.times, [](const TimePoint& p) {
    return Json::array({p.step, p.seconds, p.records_per_second, p.rss_mb});
  });
  if (report.view != nullptr) AddView(*report.view, &data);
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status WriteReport(const std::string& path, const RunReport& report) {
  // A '<' in the data would end the script that holds them.
  const std::string data =
      absl::StrReplaceAll(ReportData(report), {{"<", "\\u003c"}});
  return WriteFile(
      path, absl::StrReplaceAll(ReportFile("report_page.html"),
                                {{"/*CHART*/", ReportFile("chart.min.js")},
                                 {"/*DATA*/", data}}));
}

}  // namespace pd
