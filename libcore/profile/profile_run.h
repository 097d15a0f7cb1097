// SPDX-License-Identifier: Apache-2.0
// The loops that pd-profile watches: a job's training steps with its data, and
// a model on given inputs. Nothing is saved.
#ifndef PD_LIBCORE_PROFILE_PROFILE_RUN_H_
#define PD_LIBCORE_PROFILE_PROFILE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/passes/pipeline.h"
#include "libcore/profile/profiler.h"

namespace pd {

struct ProfileRunOptions {
  int64_t steps = 0;  ///< at most so many
  uint64_t seed = 0;  ///< of random ops, for a model
  PassOptions passes;
  /// Asked after each step: not 0 ends the loop.
  std::function<int()> stop;
};

struct ProfileRunEnd {
  int64_t steps = 0;   ///< done
  int stopped_by = 0;  ///< the value of `stop`
  std::string why;     ///< why there were fewer; "" when there were not
};

/// An error of a step ends the loop, but what was recorded before is handed
/// out.
///
/// Runs the training steps of the job, which needs loss, optimizer and
/// data.train, as pd-train would: forward, backward, update, over batches that
/// its loader makes. Ends with the job's own limit.
absl::StatusOr<ProfileRunEnd> ProfileTraining(const OpRegistry& registry,
                                              const LoadedJob& job,
                                              const ProfileRunOptions& options,
                                              Profiler* profiler);

/// Runs an inference model on the same arrays in every step.
absl::StatusOr<ProfileRunEnd> ProfileInference(const OpRegistry& registry,
                                               const LoadedModel& model,
                                               const NamedArrays& feeds,
                                               const ProfileRunOptions& options,
                                               Profiler* profiler);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_PROFILE_RUN_H_
