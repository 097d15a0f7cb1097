// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/run_log.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

// The shortest text that reads back as the same number; null for NaN, which
// JSON does not have.
Json JsonNumber(float value) {
  if (!std::isfinite(value)) return nullptr;
  for (int digits = 6; digits < 9; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    if (std::strtof(text.c_str(), nullptr) == value)
      return std::strtod(text.c_str(), nullptr);
  }
  return std::strtod(absl::StrFormat("%.9g", value).c_str(), nullptr);
}

void AddEpisodes(const Experience* experience, Json* line) {
  if (experience == nullptr) return;
  const std::optional<double> mean = experience->returns.Mean();
  if (!mean.has_value()) return;
  (*line)["episodes"] = experience->returns.episodes();
  (*line)["episode_return"] = *mean;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::string& run,
                                                     int64_t bytes) {
  std::unique_ptr<RunLog> log(new RunLog);
  log->path_ = absl::StrCat(run, "/log.jsonl");
  const std::string what = absl::StrCat("cannot write '", log->path_, "'");
  log->file_ = std::fopen(log->path_.c_str(), "ab");
  if (log->file_ == nullptr) return ErrnoToStatus(errno, what);
  const long size = std::ftell(log->file_);
  if (size < bytes)
    return DataLoss("'%s' has %d bytes; the checkpoint was made at %d",
                    log->path_, size, bytes);
  if (::ftruncate(fileno(log->file_), bytes) != 0)
    return ErrnoToStatus(errno, what);
  return log;
}

RunLog::~RunLog() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status RunLog::Append(const std::string& line) {
  const std::string text = absl::StrCat(line, "\n");
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() ||
      std::fflush(file_) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path_, "'"));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RunLog::Sync() {
  const std::string what = absl::StrCat("cannot write '", path_, "'");
  if (std::fflush(file_) != 0 || ::fsync(fileno(file_)) != 0)
    return ErrnoToStatus(errno, what);
  const off_t size = ::lseek(fileno(file_), 0, SEEK_END);
  if (size < 0) return ErrnoToStatus(errno, what);
  return static_cast<int64_t>(size);
}

std::string StepLine(const StepReport& report) {
  Json line = {{"step", report.step},
               {"epoch", report.epoch + 1},
               {"loss", JsonNumber(report.loss)}};
  if (report.phases == nullptr) {
    line["lr"] = report.learning_rate;
  } else {
    Json& by_name = line["phases"] = Json::object();
    for (const PhaseReport& phase : *report.phases)
      by_name[phase.name] = {{"loss", JsonNumber(phase.loss)},
                             {"lr", phase.learning_rate}};
  }
  AddEpisodes(report.experience, &line);
  return DumpJson(line);
}

std::string EpochLine(int64_t step, int64_t epoch, int64_t records,
                      double mean_loss, const Experience* experience) {
  Json train = {{"records", records}, {"loss", mean_loss}};
  AddEpisodes(experience, &train);
  const Json line = {{"step", step}, {"epoch", epoch}, {"train", train}};
  return DumpJson(line);
}

std::string EvaluationLine(int64_t step, int64_t epoch,
                           const EvaluationResult& result) {
  Json values = {{"records", result.records}};
  if (result.loss.has_value()) values["loss"] = *result.loss;
  for (const auto& [name, value] : result.metrics) values[name] = value;
  const Json line = {{"step", step}, {"epoch", epoch}, {"eval", values}};
  return DumpJson(line);
}

std::string ChangesLine(int64_t step, int64_t epoch,
                        const std::vector<JobChange>& changes) {
  Json changed = Json::object();
  for (const JobChange& change : changes)
    changed[change.path] = {{"from", change.before}, {"to", change.after}};
  const Json line = {{"step", step}, {"epoch", epoch}, {"changed", changed}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string BadLossText(int64_t step, float loss) {
  return absl::StrFormat(
      "the loss of step %d is %g: lower the learning rate, clip gradients, or "
      "look for bad records; the last checkpoint is untouched",
      step, loss);
}

BadRecords AllSkipped(const Dataset& dataset, const BadRecords& by_loaders) {
  BadRecords bad = dataset.left_out();
  bad.Add(by_loaders);
  return bad;
}

std::string SkippedLine(int64_t step, int64_t epoch, const BadRecords& bad,
                        absl::string_view set) {
  const Json line = {{"step", step},
                     {"epoch", epoch},
                     {"skipped",
                      {{"set", std::string(set)},
                       {"records", bad.count},
                       {"first", bad.first}}}};
  return DumpJson(line);
}

std::string SkippedText(const BadRecords& bad, absl::string_view set) {
  return absl::StrFormat(
      "data.%s: %d records were left out: %s%s", set, bad.count,
      absl::StrJoin(bad.first, "; "),
      bad.count > static_cast<int64_t>(bad.first.size()) ? "; ..." : "");
}

}  // namespace pd
