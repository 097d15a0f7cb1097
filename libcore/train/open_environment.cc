// SPDX-License-Identifier: Apache-2.0
// Data sets of a job that the network makes by acting in environments.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/environment_dataset.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

template <typename Part>
EnvironmentTensor TensorOf(const Part& part) {
  EnvironmentTensor tensor;
  tensor.dtype = DTypeOf(part.dtype());
  if (part.shape_size() > 0) tensor.shape = ListOf<int64_t>(part.shape());
  return tensor;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenEnvironmentOf(OpenContext* context,
                                             const job::DataSet& set) {
  const job::Environment& environment = set.environment();
  EnvironmentDatasetOptions options;
  options.program.command = environment.command();
  options.program.folder = environment.folder();
  options.program.set = context->is_training() ? "train" : "eval";
  options.program.observation = TensorOf(environment.observation());
  options.program.action = TensorOf(environment.action());
  options.program.timeout = environment.timeout();
  options.environments = environment.environments();
  options.batch_size = set.batch_size();
  options.discount = environment.discount();
  options.batches = environment.batches();
  options.episodes = environment.episodes();
  options.whole_episodes = environment.whole_episodes();
  if (environment.has_memory()) {
    const job::ReplayMemory& memory = environment.memory();
    if (!context->is_training())
      return context->job().At(
          InvalidArgument("an evaluation keeps no steps in memory"),
          environment, "memory");
    options.memory = memory.size();
    options.memory_begin =
        memory.has_begin() ? memory.begin() : set.batch_size();
    options.memory_steps = memory.steps();
  }
  auto dataset = OpenEnvironments(options);
  if (!dataset.ok()) return context->job().At(dataset.status(), environment);
  return dataset;
}

}  // namespace pd
