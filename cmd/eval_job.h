// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_JOB_H_
#define PD_CMD_EVAL_JOB_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/eval_options.h"
#include "libcore/model/load_model.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Metrics of the evaluation set of the job, or of the run's own job.
absl::Status EvaluateJob(const EvalOptions& options, const OpRegistry& registry,
                         LoadedModel model, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_JOB_H_
