// SPDX-License-Identifier: Apache-2.0
// A job's `copy` entries as programs: parameters and running statistics that
// follow others after the steps of training.
#ifndef PD_LIBCORE_TRAIN_COPY_PROGRAMS_H_
#define PD_LIBCORE_TRAIN_COPY_PROGRAMS_H_

#include "absl/status/status.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/train/train_program.h"

namespace pd {

/// Sets `copies` and `initial_copies` of `*program`, and says in `*built` that
/// nothing trains what follows. InvalidArgument with its place in the job for a
/// pattern that matches nothing, a name that the network does not have, two
/// shapes that differ, and a variable that follows twice.
absl::Status BuildCopies(const OpRegistry& registry, const LoadedJob& job,
                         BuiltModel* built, TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_COPY_PROGRAMS_H_
