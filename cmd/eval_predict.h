// SPDX-License-Identifier: Apache-2.0
// pd-eval --predict: a model's answers to records without labels.
#ifndef PD_CMD_EVAL_PREDICT_H_
#define PD_CMD_EVAL_PREDICT_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/eval_options.h"
#include "libcore/model/load_model.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Answers options.sources, or the records of the job's evaluation set. The job
/// is that of the run, or options.config.
absl::Status PredictRecords(const EvalOptions& options,
                            const OpRegistry& registry, LoadedModel model,
                            std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_PREDICT_H_
