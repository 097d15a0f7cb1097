// SPDX-License-Identifier: Apache-2.0
// report.html: a run to look at in a browser, in one file that needs no
// network. The page is report_page.html with Chart.js put in, both built into
// the library, and the run's numbers as JSON; everything is drawn from those.
#ifndef PD_LIBCORE_REPORT_REPORT_H_
#define PD_LIBCORE_REPORT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/report/evaluation_view.h"
#include "libcore/report/run_history.h"
#include "libcore/report/run_times.h"

namespace pd {

/// Bytes that were planned before the first step.
struct PlannedMemory {
  size_t activations = 0;  ///< held at once by the training plan
  size_t unshared = 0;     ///< the same without sharing memory
  size_t variables = 0;    ///< parameters and the optimizer's state
};

struct RunReport {
  std::string title;  ///< the job's name
  std::string run;    ///< the run's folder, or the model's
  std::string state;  ///< "running", "done", "stopped", "evaluated"
  int64_t step = 0, epoch = 0, epochs = 0;
  std::string job_text;  ///< the effective job
  /// Name and value: machine, versions, what else is worth knowing.
  std::vector<std::pair<std::string, std::string>> facts;
  const RunHistory* history = nullptr;
  std::vector<TimePoint> times;
  PlannedMemory memory;
  double peak_rss_mb = 0;
  const EvaluationView* view = nullptr;  ///< null without an evaluation
};

/// Writes the page.
absl::Status WriteReport(const std::string& path, const RunReport& report);

/// The numbers of the page as JSON (tests).
std::string ReportData(const RunReport& report);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_REPORT_H_
