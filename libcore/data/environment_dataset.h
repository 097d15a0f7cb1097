// SPDX-License-Identifier: Apache-2.0
// Records of what a network does in environments. A batch is a roll-out: steps
// that the network has chosen with the weights of this moment. With a memory it
// is a draw from the steps that were kept.
#ifndef PD_LIBCORE_DATA_ENVIRONMENT_DATASET_H_
#define PD_LIBCORE_DATA_ENVIRONMENT_DATASET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/data/datasets.h"
#include "libcore/data/environment.h"

namespace pd {

struct EnvironmentDatasetOptions {
  EnvironmentProgram program;
  int64_t environments = 1;  ///< programs side by side
  int64_t batch_size = 1;    ///< the loader's
  double discount = 0.99;
  /// An epoch ends after so many batches or episodes; one of them is 0.
  int64_t batches = 0, episodes = 0;
  /// A roll-out ends with the first episode of each environment.
  bool whole_episodes = false;
  int64_t memory = 0;        ///< steps that are kept; 0: none
  int64_t memory_begin = 1;  ///< steps in it before the first batch
  int64_t memory_steps = 1;  ///< of each environment between two batches
};

/// A stream of the fields
///   observation       before the step
///   action            what the network chose
///   reward            of the step, float32 [1]
///   return            float32 [1]: the discounted sum of the rewards from this
///                     step to the end of the roll-out or the episode
///   discount          float32 [1]: what a value of `next_observation` counts
///                     beside the return; 0 where the episode has ended
///   next_observation  where that sum ends
/// in the order of the environments, then of time. With a memory the sum is of
/// one step. The programs run from Dataset::Start on, which needs an actor.
/// InvalidArgument when options contradict.
absl::StatusOr<DatasetPtr> OpenEnvironments(
    const EnvironmentDatasetOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_ENVIRONMENT_DATASET_H_
