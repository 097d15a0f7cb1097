// SPDX-License-Identifier: Apache-2.0
// From a job with phases to a training program for each of them: the part of
// the network that its losses need, the gradients of its own parameters, its
// optimizer.
#ifndef PD_LIBCORE_TRAIN_PHASE_PROGRAMS_H_
#define PD_LIBCORE_TRAIN_PHASE_PROGRAMS_H_

#include "absl/status/status.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/train/train_program.h"

namespace pd {

/// Sets `phases`, `main`, `startup`, `gradients`, `batches_per_step` and
/// `untrained` of `*program`, whose feeds are set. InvalidArgument with its
/// place in the job for a loss that is not there or that no phase names, a
/// pattern that matches no parameter, losses that reach none of a phase's
/// parameters, and settings that jobs with phases cannot have.
absl::Status BuildPhases(const OpRegistry& registry, const LoadedJob& job,
                         BuiltModel built, TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PHASE_PROGRAMS_H_
