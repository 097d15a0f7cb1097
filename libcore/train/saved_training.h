// SPDX-License-Identifier: Apache-2.0
// The saved training program of a job's `program`, in place of a network that
// is built of layers.
#ifndef PD_LIBCORE_TRAIN_SAVED_TRAINING_H_
#define PD_LIBCORE_TRAIN_SAVED_TRAINING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The job's program as BuildModel gives a network: `main` has the gradients
/// and updates already, `test` is its form for evaluation, inputs are fed by
/// the job's fields. The job's programs have been opened (open_networks.h). An
/// error about the programs is at the job's field that names them; it is
/// InvalidArgument or NotFound, and Unimplemented for operators that we do not
/// have, sequences, and states that no checkpoint holds.
absl::StatusOr<BuiltModel> TakeSavedTraining(const OpRegistry& registry,
                                             const LoadedJob& job);

/// Finds in `program->main` what its updates tell: the gradients of parameters
/// and the learning rate. InvalidArgument for a program that updates nothing.
absl::Status FindUpdates(const OpRegistry& registry, const LoadedJob& job,
                         TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SAVED_TRAINING_H_
