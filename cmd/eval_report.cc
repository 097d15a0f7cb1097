// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_report.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cmd/common/version.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/report/report.h"
#include "libcore/train/bench.h"

namespace pd {

absl::Status WriteEvaluationReport(const std::string& path,
                                   const LoadedJob& job,
                                   const LoadedModel& model,
                                   const EvaluationView& view,
                                   const EvaluationResult& result) {
  RunHistory history;
  RunReport report;
  report.title = job.proto().name();
  report.run = model.run.empty() ? model.path : model.run;
  report.state = "evaluated";
  if (!model.run.empty()) {
    const absl::Status read = history.Read(model.run);
    if (!read.ok() && read.code() != absl::StatusCode::kNotFound) return read;
    PD_ASSIGN_OR_RETURN(report.times, ReadTimes(model.run, INT64_MAX));
  }
  if (history.series().empty()) {
    if (result.loss.has_value()) history.Add(0, "eval/loss", *result.loss);
    for (const auto& [name, value] : result.metrics)
      history.Add(0, absl::StrCat("eval/", name), value);
  }
  report.job_text = job.EffectiveText();
  report.facts = MachineFacts();
  report.history = &history;
  report.peak_rss_mb = PeakRssMegabytes();
  report.view = &view;
  return WriteReport(path, report);
}

}  // namespace pd
