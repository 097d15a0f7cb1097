// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVALUATION_SPEC_H_
#define PD_CMD_EVALUATION_SPEC_H_

#include "absl/status/statusor.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/load_model.h"
#include "libcore/train/train_program.h"

namespace pd {

/// An inference model with the job's loss and metrics. Its outputs take the
/// places of the job's; so do its inputs, where names differ and it has as
/// many.
absl::StatusOr<EvaluationSpec> SpecOfModel(const TrainProgram& job,
                                           const LoadedModel& model);

}  // namespace pd

#endif  // PD_CMD_EVALUATION_SPEC_H_
