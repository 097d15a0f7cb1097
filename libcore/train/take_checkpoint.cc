// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/take_checkpoint.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/job_optimizer.h"

namespace pd {

absl::StatusOr<Checkpoint> TakeCheckpoint(const LoadedJob& job,
                                          const TrainProgram& program,
                                          const TrainState& state,
                                          const Scope& scope,
                                          const NamedArrays& of_others) {
  Checkpoint checkpoint;
  checkpoint.state = state;
  checkpoint.program = program.main;
  absl::flat_hash_set<absl::string_view> tested;
  for (const VarDesc& var : program.test.global().vars) tested.insert(var.name);
  for (const VarDesc& var : program.main.global().vars) {
    if (!var.persistable) continue;
    // As PaddlePaddle: running statistics belong to the network.
    const bool of_network = var.is_parameter || tested.contains(var.name);
    NamedArrays& group = of_network ? checkpoint.params : checkpoint.opt;
    const auto other = of_others.find(var.name);
    if (other != of_others.end()) {
      group[var.name] = other->second;
      continue;
    }
    PD_ASSIGN_OR_RETURN(group[var.name], scope.Get(var.name));
  }
  for (const auto& name : program.paddle_names)
    if (checkpoint.params.count(name.first) > 0)
      checkpoint.parameter_names.push_back(name);
  PD_ASSIGN_OR_RETURN(checkpoint.lr_scheduler, SchedulerStateOf(job, state));
  return checkpoint;
}

}  // namespace pd
