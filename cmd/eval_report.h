// SPDX-License-Identifier: Apache-2.0
// pd-eval --report: the page of a run, with an evaluation of now.
#ifndef PD_CMD_EVAL_REPORT_H_
#define PD_CMD_EVAL_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.h"
#include "libcore/report/evaluation_view.h"
#include "libcore/train/evaluator.h"

namespace pd {

/// Writes the page to `path`. Of a run directory it shows the curves too, as
/// RUN/log.jsonl and RUN/times.jsonl hold them; of another model the results
/// alone.
absl::Status WriteEvaluationReport(const std::string& path,
                                   const LoadedJob& job,
                                   const LoadedModel& model,
                                   const EvaluationView& view,
                                   const EvaluationResult& result);

}  // namespace pd

#endif  // PD_CMD_EVAL_REPORT_H_
