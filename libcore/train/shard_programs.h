// SPDX-License-Identifier: Apache-2.0
// A job's training step, divided for shards.
#ifndef PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_
#define PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// OK for a job without `distributed`; else InvalidArgument where shards do not
/// divide the batch, and Unimplemented for phases and saved programs. Errors
/// carry their place.
absl::Status CheckTakesShards(const LoadedJob& job);

/// Fills in program->shards: the first `gradient_ops` ops of `program->main`
/// make the gradients, the others use them. Unimplemented, at the job's
/// `distributed`, for gradients that are selected rows or not float32, and for
/// variables that a shard would change and that have no mean.
absl::Status CutForShards(const LoadedJob& job, size_t gradient_ops,
                          TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHARD_PROGRAMS_H_
