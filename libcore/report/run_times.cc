// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/run_times.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

double NumberOf(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}

}  // namespace

absl::StatusOr<std::vector<TimePoint>> ReadTimes(const std::string& run,
                                                 int64_t step) {
  std::vector<TimePoint> points;
  const std::string path = absl::StrCat(run, "/times.jsonl");
  const absl::StatusOr<FileBytes> bytes = ReadFile(path);
  if (bytes.status().code() == absl::StatusCode::kNotFound) return points;
  PD_RETURN_IF_ERROR(bytes.status());
  const std::vector<std::string> lines = absl::StrSplit(bytes->view(), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const Json json = Json::parse(lines[i], nullptr, false);
    if (!json.is_object() || !json.contains("step") ||
        !json["step"].is_number_integer()) {
      if (i + 1 == lines.size()) break;
      return DataLoss("'%s' line %d is no line of times", path, i + 1);
    }
    TimePoint point;
    point.step = json["step"].get<int64_t>();
    if (point.step > step) break;
    point.seconds = NumberOf(json, "seconds");
    point.records_per_second = NumberOf(json, "records_per_second");
    point.rss_mb = NumberOf(json, "rss_mb");
    point.peak_rss_mb = NumberOf(json, "peak_rss_mb");
    points.push_back(point);
  }
  return points;
}

std::string TimeLine(const TimePoint& point) {
  const Json line = {{"step", point.step},
                     {"seconds", point.seconds},
                     {"records_per_second", point.records_per_second},
                     {"rss_mb", point.rss_mb},
                     {"peak_rss_mb", point.peak_rss_mb}};
  return line.dump();
}

double RssMegabytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace pd
