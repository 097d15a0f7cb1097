// SPDX-License-Identifier: Apache-2.0
// A check of a training run without one step of it: everything that can be
// wrong before the first step is found, and what it will need is said.
#ifndef PD_LIBCORE_REPORT_DRY_RUN_H_
#define PD_LIBCORE_REPORT_DRY_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/passes/pipeline.h"
#include "libcore/train/initial_values.h"

namespace pd {

struct DataPlan {
  int64_t records = 0, batches = 0;  ///< 0: a stream's end shows them
  int64_t batch_size = 0;
  std::vector<BatchField> fields;  ///< without data; of a whole batch
  size_t activation_bytes = 0;     ///< held by a plan for a whole batch
  size_t unshared_bytes = 0;       ///< the same without sharing memory
};

/// A training in several processes (the job's `distributed`).
struct ExchangePlan {
  int64_t shards = 1;
  size_t bytes = 0;  ///< of a shard's gradients, statistics and loss
  struct Sent {
    int processes = 1;
    int64_t bytes = 0;  ///< that one of them sends in a step, at most
    /// The optimizer's, that one of them holds at most; 0 without sharding.
    int64_t states = 0;
  };
  std::vector<Sent> sent;  ///< for 2, 4, 8, ... processes, and one a shard
};

/// A phase of a step of training.
struct PhasePlan {
  std::string name;
  int runs = 1;           ///< in a step
  int64_t operators = 0;  ///< of a run
  size_t activation_bytes = 0, unshared_bytes = 0;
  std::optional<int64_t> flops;  ///< of a run, as DryRun::step_flops
};

struct DryRun {
  int64_t parameters = 0, trainable = 0;  ///< elements
  size_t parameter_bytes = 0;
  size_t state_bytes = 0;  ///< the optimizer's, and statistics
  DataPlan train;          ///< with the memory of all phases
  std::vector<PhasePlan> phases;
  std::optional<DataPlan> eval;
  int64_t epochs = 0;
  int64_t steps = 0;  ///< in all; 0: a stream's end shows it
  /// Operations of one step, two for each multiply-add of its convolutions and
  /// matrix products, gradients included; nothing when a shape is not known.
  std::optional<int64_t> step_flops;
  std::optional<ExchangePlan> exchange;
  /// Settings that work but can hardly be meant, with places in the job.
  std::vector<std::string> warnings;
};

/// Builds the programs, opens the data, reads the first record of each set,
/// takes initial values from `sources`, and plans the memory. Errors of the job
/// carry their place; others are of files.
absl::StatusOr<DryRun> RunDry(
    const OpRegistry& registry, const LoadedJob& job,
    const PassOptions& passes = {},
    const std::vector<InitialParameters>& sources = {});

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_DRY_RUN_H_
