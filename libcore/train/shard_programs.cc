// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/shard_programs.h"

#include <set>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/sharded_update.h"

namespace pd {
namespace {

// The variables that ops [begin, end) of block 0 write, or read.
std::set<std::string> NamesIn(const ProgramDesc& program, size_t begin,
                              size_t end, bool written) {
  std::set<std::string> names;
  for (size_t i = begin; i < end; ++i) {
    const OpDesc& op = program.global().ops[i];
    for (const auto& [slot, variables] : written ? op.outputs : op.inputs)
      names.insert(variables.begin(), variables.end());
  }
  names.erase(std::string(kEmptyVar));
  return names;
}

absl::Status AddGradients(const TrainProgram& program, ShardPrograms* shards) {
  for (const auto& [parameter, gradient] : program.gradients) {
    const VarDesc* var = program.main.global().FindVar(parameter);
    const VarDesc* made = program.main.global().FindVar(gradient);
    PD_INVARIANT(var != nullptr);
    if (var->dtype != DType::kFloat32)
      return Unimplemented("parameter '%s' is %s; shards add up float32 alone",
                           parameter, Name(var->dtype));
    shards->gradients.push_back({gradient, DType::kFloat32, var->shape});
    shards->rows.push_back(made != nullptr &&
                           made->kind == VarKind::kSelectedRows);
  }
  return absl::OkStatus();
}

// A layer sync_batch_norm is batch_norm where one process holds the batch. Its
// ops, of the gradient and of recomputation too, are known by its running mean.
// True where shards exchange numbers.
bool Synchronise(const TrainProgram& program, ProgramDesc* shard) {
  std::set<std::string> outputs, means;
  for (const LayerInfo& layer : program.layers)
    if (layer.kind == "sync_batch_norm")
      outputs.insert(layer.variables.begin(), layer.variables.end());
  for (const OpDesc& op : shard->global().ops)
    if (op.type == "batch_norm" && outputs.count(op.Out("Y")) > 0)
      means.insert(op.In("Mean"));
  bool together = false;
  for (BlockDesc& block : shard->blocks)
    for (OpDesc& op : block.ops) {
      if ((op.type == "batch_norm" || op.type == "batch_norm_grad") &&
          means.count(op.In("Mean")) > 0)
        op.type = "sync_" + op.type;
      together = together || op.type == "sync_batch_norm" ||
                 op.type == "sparse_sync_batch_norm";
    }
  return together;
}

}  // namespace

absl::Status CheckTakesShards(const LoadedJob& job) {
  const job::Job& proto = job.proto();
  if (!proto.has_distributed()) return absl::OkStatus();
  if (proto.phase_size() > 0)
    return job.At(Unimplemented("a job with a 'phase' trains in one process, "
                                "without 'distributed'"),
                  proto.phase(0));
  if (proto.has_program())
    return job.At(Unimplemented("a saved program trains in one process, "
                                "without 'distributed'; pd-train --program "
                                "runs those that fleet has written"),
                  proto.program());
  const int64_t shards = proto.distributed().shards();
  const int64_t records = proto.data().train().batch_size();
  if (proto.data().has_train() && records % shards != 0)
    return job.At(
        InvalidArgument("%d shards do not divide a batch of %d records "
                        "(data.train.batch_size) into equal parts",
                        shards, records),
        proto.distributed(), "shards");
  return absl::OkStatus();
}

absl::Status CutForShards(const LoadedJob& job, const StepParts& parts,
                          const World* world, TrainProgram* program) {
  const size_t gradient_ops = parts.update;
  const job::DistributedTraining& distributed = job.proto().distributed();
  const auto wrong = [&](const absl::Status& status) {
    return job.At(status, distributed);
  };
  ShardPrograms shards;
  for (const OpDesc& op : program->main.global().ops) {
    if (op.type == "dgc")
      return wrong(Unimplemented(
          "dgc_momentum sums the gradients of each trainer by themselves, and "
          "shards keep nothing between steps; it trains in one process, "
          "without 'distributed'"));
  }
  shards.shards = distributed.shards();
  shards.bucket_bytes = int64_t{distributed.fuse_grad_size_in_mb()} << 20;
  if (distributed.has_sharding()) shards.stage = distributed.sharding().stage();
  const absl::Status added = AddGradients(*program, &shards);
  if (!added.ok()) return wrong(added);
  std::set<std::string> fed;
  for (const FeedSpec& gradient : shards.gradients) fed.insert(gradient.name);

  const size_t all = program->main.global().ops.size();
  PD_INVARIANT(gradient_ops <= all);
  const std::set<std::string> made =
      NamesIn(program->main, 0, gradient_ops, true);
  for (const std::string& name : made) {
    const VarDesc* var = program->main.global().FindVar(name);
    if (var == nullptr || !var->persistable) continue;
    if (var->dtype != DType::kFloat32)
      return wrong(Unimplemented(
          "training changes '%s' of %s in each step before the update; that "
          "has no mean over shards",
          name, Name(var->dtype)));
    shards.statistics.push_back(name);
  }
  for (const std::string& name :
       NamesIn(program->main, gradient_ops, all, false)) {
    const VarDesc* var = program->main.global().FindVar(name);
    if (made.count(name) > 0 && fed.count(name) == 0 &&
        (var == nullptr || !var->persistable))
      return wrong(Unimplemented(
          "the update reads '%s', which each shard makes for itself", name));
  }
  shards.shard = shards.update = program->main;
  auto& forward = shards.shard.global().ops;
  forward.erase(forward.begin() + static_cast<ptrdiff_t>(gradient_ops),
                forward.end());
  auto& updates = shards.update.global().ops;
  updates.erase(updates.begin(),
                updates.begin() + static_cast<ptrdiff_t>(gradient_ops));
  shards.together = shards.shards > 1 && Synchronise(*program, &shards.shard);
  program->shards = std::move(shards);
  if (!distributed.has_sharding() || world == nullptr || world->size() == 1)
    return absl::OkStatus();
  const job::Sharding& sharding = distributed.sharding();
  const absl::Status taken =
      TakeShare(sharding.stage(), parts.averages - parts.update, world->rank(),
                world->size(), program);
  return taken.ok() ? taken : job.At(taken, sharding);
}

}  // namespace pd
