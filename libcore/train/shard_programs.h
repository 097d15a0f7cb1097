// SPDX-License-Identifier: Apache-2.0
// A job's training step, divided for shards.
#ifndef PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_
#define PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "libcore/dist/world.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// OK for a job without `distributed`; else InvalidArgument where shards do not
/// divide the batch, and Unimplemented for phases and saved programs. Errors
/// carry their place.
absl::Status CheckTakesShards(const LoadedJob& job);

/// The parts of a step, by the number of ops of `main` before each.
struct StepParts {
  size_t update = 0;    ///< before it, ops make the gradients
  size_t averages = 0;  ///< of the parameters that the update has changed
};

/// Fills in program->shards; with the job's `sharding`, for this process of
/// `world`, which may be null. Unimplemented, at the job's `distributed`, for
/// gradients that are not float32, for variables that a shard would change and
/// that have no mean, and for updates that cannot be divided.
absl::Status CutForShards(const LoadedJob& job, const StepParts& parts,
                          const World* world, TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_
