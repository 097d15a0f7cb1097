// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/resume_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/run_checkpoint.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

// Optimizer states are called as this version calls them: those of `before`
// that ops of the same kind update for the same parameters. Earlier versions
// called them after the job's names, "fc.weight_moment1_0".
void RenameStates(const ProgramDesc& before, const ProgramDesc& now,
                  NamedArrays* values) {
  using Place = std::pair<std::string, std::string>;  // parameter, slot
  const auto states = [](const ProgramDesc& program) {
    std::map<Place, std::string> found;
    for (const OpDesc& op : program.global().ops) {
      if (op.In("Param").empty() || op.Out("ParamOut").empty()) continue;
      for (const auto& [slot, names] : op.inputs)
        if (names.size() == 1 && slot != "Param" && slot != "Grad" &&
            slot != "LearningRate")
          found[{absl::StrCat(op.type, " ", op.In("Param")), slot}] = names[0];
    }
    return found;
  };
  const auto old = states(before);
  for (const auto& [place, name] : states(now)) {
    const auto there = old.find(place);
    if (there == old.end() || there->second == name) continue;
    const auto value = values->find(there->second);
    if (value == values->end() || values->count(name) > 0) continue;
    (*values)[name] = std::move(value->second);
    values->erase(value);
  }
}

// Whether another process has the variable, and this one does not need it.
bool IsAbsent(const TrainProgram& program, const std::string& name) {
  return program.shards.has_value() && program.shards->sharding.has_value() &&
         program.shards->sharding->absent.count(name) > 0;
}

absl::Status TakeValues(const TrainProgram& program, const std::string& folder,
                        Checkpoint checkpoint, bool weights_only,
                        Session* session) {
  const std::string place = absl::StrCat("checkpoint '", folder, "'");
  NamedArrays& values = checkpoint.params;
  values.merge(checkpoint.opt);
  RenameStates(checkpoint.program, program.main, &values);
  ParamMatch match = MatchParams(program.main, values);
  if (weights_only) {
    const std::vector<std::string> weights = PersistableTensors(program.test);
    const auto fresh = [&weights](const std::string& name) {
      return !std::binary_search(weights.begin(), weights.end(), name);
    };
    match.Forget(fresh);
    for (auto it = values.begin(); it != values.end();)
      it = fresh(it->first) ? values.erase(it) : std::next(it);
  }
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(),
               absl::StrCat(place, " is of another network or optimizer")));
  for (const VarDesc& var : program.main.global().vars) {
    const auto value = values.find(var.name);
    if (!var.persistable || value == values.end()) continue;
    if (IsAbsent(program, var.name)) continue;
    PD_RETURN_IF_ERROR(
        Annotate(session->scope().Set(var.name, value->second), place));
  }
  return absl::OkStatus();
}

// Says how to go on where the newest checkpoint cannot be read.
absl::Status OfferOlder(const std::string& folder, const absl::Status& status) {
  const std::filesystem::path checkpoints =
      std::filesystem::path(folder).parent_path();
  const std::string run = checkpoints.parent_path().string();
  const int64_t before = WholeCheckpointBefore(run, folder);
  if (before < 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; the checkpoint before, '",
                   CheckpointPath(run, before), "', is whole: remove '", folder,
                   "' and '", run, "/latest', and --resume goes on from it"));
}

}  // namespace

absl::StatusOr<TrainState> ResumeFrom(const TrainProgram& program,
                                      const std::string& folder,
                                      const ResumeOptions& options,
                                      Session* session) {
  absl::StatusOr<Checkpoint> read = ReadCheckpoint(folder);
  if (!read.ok()) return OfferOlder(folder, read.status());
  Checkpoint checkpoint = *std::move(read);
  const TrainState state = checkpoint.state;
  if (options.experience != nullptr)
    PD_RETURN_IF_ERROR(
        Annotate(options.experience->FromArrays(checkpoint.experience),
                 absl::StrCat("checkpoint '", folder, "'")));
  PD_RETURN_IF_ERROR(TakeValues(program, folder, std::move(checkpoint),
                                options.weights_only, session));
  if (state.seed != options.seed)
    return InvalidArgument(
        "checkpoint '%s' was trained with seed %d; the job says %d", folder,
        state.seed, options.seed);
  if (state.threads != options.threads)
    LogWarning(
        "checkpoint '%s' was trained with %d threads, now there are %d: the "
        "last bits will differ",
        folder, state.threads, options.threads);
  return state;
}

}  // namespace pd
