// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/run_history.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

void Take(const std::string& tag, const Json& value, LogLinePoints* points) {
  if (value.is_number())
    points->values.push_back({tag, value.get<double>()});
  else if (value.is_null())
    points->values.push_back({tag, std::numeric_limits<double>::quiet_NaN()});
}

}  // namespace

LogLinePoints PointsOf(const std::string& line) {
  LogLinePoints points;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") ||
      !json["step"].is_number_integer())
    return points;
  points.step = json["step"].get<int64_t>();
  for (const auto& [name, value] : json.items()) {
    if (name == "step" || name == "epoch") continue;
    Take(absl::StrCat("train/", name), value, &points);
    if (!value.is_object()) continue;
    for (const auto& [inner, number] : value.items()) {
      if (inner == "records") continue;
      if (name == "phases" && number.is_object())
        for (const auto& [what, of_phase] : number.items())
          Take(absl::StrCat("train/", inner, "/", what), of_phase, &points);
      const bool mean = name == "train" && inner == "loss";
      Take(mean ? "train/epoch_loss" : absl::StrCat(name, "/", inner), number,
           &points);
    }
  }
  return points;
}

void RunHistory::Add(int64_t step, const std::string& tag, double value) {
  std::vector<Point>& points = series_[tag];
  // A step is evaluated anew where a run ends that was stopped there.
  if (!points.empty() && points.back().step == step) points.pop_back();
  points.push_back({step, value});
}

void RunHistory::AddLine(const std::string& line) {
  const LogLinePoints points = PointsOf(line);
  for (const TaggedValue& value : points.values)
    Add(points.step, value.tag, value.value);
}

absl::Status RunHistory::Read(const std::string& run) {
  PD_ASSIGN_OR_RETURN(const FileBytes bytes,
                      ReadFile(absl::StrCat(run, "/log.jsonl")));
  for (absl::string_view line : absl::StrSplit(bytes.view(), '\n'))
    AddLine(std::string(line));
  return absl::OkStatus();
}

}  // namespace pd
