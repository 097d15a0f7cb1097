// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVALUATION_SPEC_H_
#define PD_CMD_EVALUATION_SPEC_H_

#include "absl/status/statusor.h"
#include "libcore/model/load_model.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/train_program.h"

namespace pd {

/// An inference model with the job's loss and metrics. Its outputs take the
/// places of the job's; so do its inputs, where names differ and it has as
/// many.
absl::StatusOr<EvaluationSpec> SpecOfModel(const TrainProgram& job,
                                           const LoadedModel& model);

/// The job's own network, for the values of a run or of parameters alone.
EvaluationSpec SpecOfJob(const TrainProgram& job);

/// Puts the model's values into the session's scope. InvalidArgument names the
/// parameters of `program` that it lacks or has in another shape.
absl::Status SetParameters(const LoadedModel& model, const ProgramDesc& program,
                           Session* session);

}  // namespace pd

#endif  // PD_CMD_EVALUATION_SPEC_H_
