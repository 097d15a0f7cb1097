// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/copy_programs.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/name_patterns.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

// A variable, and the one that it follows.
struct Follower {
  std::string from, to;
};

ProgramDesc EmptyProgram() {
  ProgramDesc program;
  program.version = 2003000;
  program.blocks.emplace_back();
  return program;
}

// The variables that `copy` names, all of which the network has.
absl::StatusOr<std::vector<Follower>> FollowersOf(const LoadedJob& job,
                                                  const job::Copy& copy,
                                                  const ProgramDesc& network) {
  const absl::StatusOr<NameChange> change =
      NameChange::Parse(absl::StrCat(copy.from(), "=>", copy.to()));
  if (!change.ok()) return job.At(change.status(), copy, "to");
  const std::vector<std::string> names = PersistableTensors(network);
  std::vector<Follower> followers;
  for (const std::string& name : names) {
    const auto to = change->Apply(name);
    if (!to.has_value()) continue;
    const VarDesc* source = network.global().FindVar(name);
    const VarDesc* target = network.global().FindVar(*to);
    if (target == nullptr || !target->persistable)
      return job.At(InvalidArgument("'%s' is to be copied to '%s', which the "
                                    "network does not have",
                                    name, *to),
                    copy, "to");
    if (target == source)
      return job.At(InvalidArgument("'%s' is to be copied to itself", name),
                    copy, "to");
    if (target->shape != source->shape || target->dtype != source->dtype)
      return job.At(
          InvalidArgument("'%s' is %s %s and cannot be copied to '%s', which "
                          "is %s %s",
                          name, Name(source->dtype), ToString(source->shape),
                          *to, Name(target->dtype), ToString(target->shape)),
          copy, "to");
    followers.push_back({name, *to});
  }
  if (followers.empty())
    return job.At(InvalidArgument("nothing in the network has a name that "
                                  "matches '%s'; there are %s",
                                  copy.from(), QuotedList(names)),
                  copy, "from");
  return followers;
}

// to = tau * from + (1 - tau) * to, or an assignment where tau is 1.
absl::Status AppendCopy(const Follower& follower, double tau,
                        const ProgramDesc& network, BlockBuilder* main) {
  for (const std::string& name : {follower.from, follower.to})
    if (main->FindVar(name) == nullptr)
      main->AddVar(*network.global().FindVar(name));
  OpDesc last;
  last.SetOutput("Out", {follower.to});
  if (tau == 1) {
    last.type = "assign";
    last.SetInput("X", {follower.from});
    return main->Append(std::move(last));
  }
  last.type = "sum";
  std::vector<std::string> terms;
  for (const auto& [name, factor] : {std::make_pair(follower.from, tau),
                                     std::make_pair(follower.to, 1 - tau)}) {
    OpDesc op;
    op.type = "scale";
    op.SetInput("X", {name});
    terms.push_back(main->UniqueTemporary("scale"));
    op.SetOutput("Out", {terms.back()});
    op.attrs = {{"scale", static_cast<float>(factor)},
                {"bias", 0.0f},
                {"bias_after_scale", true}};
    PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  }
  last.SetInput("X", terms);
  return main->Append(std::move(last));
}

// Nothing else trains it.
void StopTraining(const std::string& name, BuiltModel* built) {
  for (ParameterSettings& settings : built->parameters)
    if (settings.name == name) settings.trainable = false;
  for (VarDesc& var : built->main.global().vars)
    if (var.name == name) var.stop_gradient = true;
}

}  // namespace

absl::Status BuildCopies(const OpRegistry& registry, const LoadedJob& job,
                         BuiltModel* built, TrainProgram* program) {
  std::map<std::string, const job::Copy*> of;  // what follows
  for (const job::Copy& copy : job.proto().copy()) {
    PD_ASSIGN_OR_RETURN(const std::vector<Follower> followers,
                        FollowersOf(job, copy, built->main));
    CopyProgram made{EmptyProgram(), copy.every()};
    BlockBuilder main(&registry, &made.main);
    ProgramDesc at_start = program->initial_copies.has_value()
                               ? *program->initial_copies
                               : EmptyProgram();
    BlockBuilder initial(&registry, &at_start);
    for (const Follower& follower : followers) {
      const auto [it, is_new] = of.emplace(follower.to, &copy);
      if (!is_new)
        return job.At(InvalidArgument("'%s' is already copied to (%s)",
                                      follower.to, job.Where(*it->second)),
                      copy, "to");
      absl::Status added = AppendCopy(follower, copy.tau(), built->main, &main);
      if (added.ok() && copy.at_start())
        added = AppendCopy(follower, 1, built->main, &initial);
      if (!added.ok()) return job.At(added, copy);
      StopTraining(follower.to, built);
    }
    program->copies.push_back(std::move(made));
    if (copy.at_start()) program->initial_copies = std::move(at_start);
  }
  return absl::OkStatus();
}

}  // namespace pd
