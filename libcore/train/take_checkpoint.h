// SPDX-License-Identifier: Apache-2.0
// The contents of a run's checkpoint.
#ifndef PD_LIBCORE_TRAIN_TAKE_CHECKPOINT_H_
#define PD_LIBCORE_TRAIN_TAKE_CHECKPOINT_H_

#include "absl/status/statusor.h"
#include "libcore/exec/scope.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The checkpoint of a run of `job` that stands at `state`: copies of the
/// persistable variables of `program`, or the values that other processes have
/// given.
absl::StatusOr<Checkpoint> TakeCheckpoint(const LoadedJob& job,
                                          const TrainProgram& program,
                                          const TrainState& state,
                                          const Scope& scope,
                                          const NamedArrays& of_others = {});

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_TAKE_CHECKPOINT_H_
