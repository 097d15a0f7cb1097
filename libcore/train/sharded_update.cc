// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/sharded_update.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Names = std::set<std::string>;

// The block that an op runs; null: none.
BlockDesc* BlockRunBy(ProgramDesc* program, const OpDesc& op) {
  const auto block = op.attrs.find("sub_block");
  if (block == op.attrs.end()) return nullptr;
  const auto* ref = std::get_if<BlockRef>(&block->second);
  return ref == nullptr ? nullptr
                        : &program->blocks[static_cast<size_t>(ref->index)];
}

std::vector<std::string> VariablesOf(const SlotList& slots) {
  std::vector<std::string> all;
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) all.push_back(name);
  return all;
}

// All ops but those that run others, which are asked instead.
void ForEachInnerOp(ProgramDesc* program, const std::vector<OpDesc>& ops,
                    const std::function<void(const OpDesc&)>& look) {
  for (const OpDesc& op : ops) {
    if (const BlockDesc* inner = BlockRunBy(program, op))
      ForEachInnerOp(program, inner->ops, look);
    else
      look(op);
  }
}

void ForEachInnerOp(const ProgramDesc& program,
                    const std::function<void(const OpDesc&)>& look) {
  if (program.blocks.empty()) return;
  auto& given = const_cast<ProgramDesc&>(program);  // only looked at
  ForEachInnerOp(&given, program.global().ops, look);
}

// Persistable variables that the update writes.
Names PersistablesWrittenBy(const ProgramDesc& update) {
  Names written;
  ForEachInnerOp(update, [&](const OpDesc& op) {
    for (const std::string& name : VariablesOf(op.outputs)) {
      const VarDesc* var = update.global().FindVar(name);
      if (var != nullptr && var->persistable) written.insert(name);
    }
  });
  return written;
}

int64_t VariableBytes(const ProgramDesc& program, const std::string& name) {
  const VarDesc& var = *program.global().FindVar(name);
  return NumElements(var.shape) * static_cast<int64_t>(SizeOf(var.dtype));
}

// Sets of names, of which two can be joined.
class JoinedNames {
 public:
  const std::string& Find(const std::string& name) {
    const auto it = parent_.try_emplace(name, name).first;
    if (it->second == name) return it->first;
    return it->second = Find(it->second);
  }
  void Join(const std::string& a, const std::string& b) {
    const std::string root = Find(a);
    parent_[root] = Find(b);
  }

 private:
  std::map<std::string, std::string> parent_;
};

// From the last op back: adds to `needed` what its names are computed from.
// With `drop` other ops are removed. True where an op is needed.
bool TraceBack(ProgramDesc* program, BlockDesc* block, bool drop,
               Names* needed) {
  std::vector<char> stays(block->ops.size(), 0);
  for (size_t i = stays.size(); i-- > 0;) {
    OpDesc& op = block->ops[i];
    const std::vector<std::string> outputs = VariablesOf(op.outputs);
    BlockDesc* inner = BlockRunBy(program, op);
    if (inner != nullptr)
      stays[i] = TraceBack(program, inner, drop, needed);
    else
      stays[i] = std::any_of(
          outputs.begin(), outputs.end(),
          [&](const std::string& name) { return needed->count(name) > 0; });
    if (!stays[i]) continue;
    const std::vector<std::string> inputs = VariablesOf(op.inputs);
    needed->insert(inputs.begin(), inputs.end());
    if (inner == nullptr || !drop) continue;
    Names left;
    for (const OpDesc& kept : inner->ops)
      for (const std::string& name : VariablesOf(kept.outputs))
        left.insert(name);
    for (auto& [slot, names] : op.outputs)
      names.erase(std::remove_if(names.begin(), names.end(),
                                 [&](const std::string& name) {
                                   return left.count(name) == 0;
                                 }),
                  names.end());
  }
  if (drop) {
    size_t i = 0;
    block->ops.erase(std::remove_if(block->ops.begin(), block->ops.end(),
                                    [&](const OpDesc&) { return !stays[i++]; }),
                     block->ops.end());
  }
  return std::count(stays.begin(), stays.end(), 1) > 0;
}

// Leaves in `update` what `wanted` need, step after step: a variable that is
// read is needed in the next step too.
void KeepOnlyWhat(Names wanted, ProgramDesc* update) {
  const Names written = PersistablesWrittenBy(*update);
  Names needed;
  for (size_t before = 0; before != wanted.size() || needed.empty();) {
    before = wanted.size();
    needed = wanted;
    TraceBack(update, &update->global(), false, &needed);
    std::set_intersection(needed.begin(), needed.end(), written.begin(),
                          written.end(), std::inserter(wanted, wanted.end()));
    if (wanted.empty()) break;
  }
  TraceBack(update, &update->global(), true, &wanted);
}

struct Share {
  std::vector<std::string> parameters;  // of the whole update
  std::vector<int> owners;              // of each
  int rank = 0;
};

// Gives the squared norms of gradients, which clipping adds up, to the
// processes that have the gradients. Elsewhere they are fed.
void CutNorms(const Share& share, ProgramDesc* update, ShardedUpdate* made) {
  Names own;
  for (const OpDesc& op : update->global().ops) {
    if (op.type != "squared_l2_norm") continue;
    const auto& pair = std::get<std::vector<std::string>>(
        op.attrs.at(std::string(kOpRoleVarAttr)));
    const auto at =
        std::find(share.parameters.begin(), share.parameters.end(), pair[0]);
    const int owner =
        share.owners[static_cast<size_t>(at - share.parameters.begin())];
    made->squares.emplace_back(op.Out("Out"), owner);
    if (owner == share.rank) own.insert(op.Out("Out"));
  }
  made->norms = *update;
  KeepOnlyWhat(own, &made->norms);
  auto& ops = update->global().ops;
  ops.erase(std::remove_if(
                ops.begin(), ops.end(),
                [](const OpDesc& op) { return op.type == "squared_l2_norm"; }),
            ops.end());
}

// In stage 2 the gradients of others are not there.
absl::Status CheckOwnGradients(const TrainProgram& program, const Share& share,
                               const ProgramDesc& part) {
  const Names used = VariablesUsedBy(part);
  for (const auto& [parameter, gradient] : program.gradients) {
    const auto at =
        std::find(share.parameters.begin(), share.parameters.end(), parameter);
    const size_t i = static_cast<size_t>(at - share.parameters.begin());
    if (share.owners[i] != share.rank && used.count(gradient) > 0)
      return Unimplemented(
          "the update of one parameter reads the gradient of another, '%s', "
          "which sharding's stage 2 gives to one process; stage 1 has it in "
          "all",
          parameter);
  }
  return absl::OkStatus();
}

// Startup ops that make nothing but what is absent.
void DropAbsent(const Names& absent, ProgramDesc* startup) {
  auto& ops = startup->global().ops;
  ops.erase(std::remove_if(ops.begin(), ops.end(),
                           [&](const OpDesc& op) {
                             const auto names = VariablesOf(op.outputs);
                             return !names.empty() &&
                                    std::all_of(names.begin(), names.end(),
                                                [&](const std::string& name) {
                                                  return absent.count(name) > 0;
                                                });
                           }),
            ops.end());
}

}  // namespace

std::set<std::string> VariablesUsedBy(const ProgramDesc& program) {
  Names used;
  ForEachInnerOp(program, [&](const OpDesc& op) {
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const std::string& name : VariablesOf(*slots)) used.insert(name);
  });
  return used;
}

absl::StatusOr<std::vector<UpdateGroup>> GroupsOf(
    const ProgramDesc& update, const std::vector<std::string>& parameters) {
  const Names written = PersistablesWrittenBy(update);
  JoinedNames parts;
  ForEachInnerOp(update, [&](const OpDesc& op) {
    std::string first;
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const std::string& name : VariablesOf(*slots)) {
        if (written.count(name) == 0) continue;
        if (first.empty()) first = name;
        parts.Join(name, first);
      }
  });
  std::map<std::string, size_t> numbers;  // of groups
  std::vector<UpdateGroup> groups;
  for (const std::string& parameter : parameters) {
    const auto [it, fresh] =
        numbers.emplace(parts.Find(parameter), groups.size());
    if (!fresh)
      return Unimplemented(
          "the updates of '%s' and '%s' cannot be divided: an operator changes "
          "both",
          groups[it->second].parameter, parameter);
    groups.push_back({parameter, {}, VariableBytes(update, parameter), 0});
  }
  for (const std::string& name : written) {
    const auto group = numbers.find(parts.Find(name));
    if (group == numbers.end()) continue;
    UpdateGroup& of = groups[group->second];
    if (of.parameter == name) continue;
    of.states.push_back(name);
    of.bytes += VariableBytes(update, name);
    of.state_bytes += VariableBytes(update, name);
  }
  return groups;
}

std::vector<int> DivideGroups(const std::vector<UpdateGroup>& groups,
                              int size) {
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return groups[a].bytes > groups[b].bytes;
  });
  std::vector<int64_t> bytes(static_cast<size_t>(size), 0);
  std::vector<int> owners(groups.size());
  for (const size_t group : order) {
    const auto least = std::min_element(bytes.begin(), bytes.end());
    owners[group] = static_cast<int>(least - bytes.begin());
    *least += groups[group].bytes;
  }
  return owners;
}

absl::StatusOr<std::vector<ProgramDesc>> SplitUpdate(
    const ProgramDesc& update,
    const std::vector<std::pair<std::string, std::string>>& gradients,
    const std::vector<size_t>& buckets, size_t count) {
  std::vector<ProgramDesc> whole(count);
  whole.back() = update;
  std::vector<std::string> parameters;
  for (const auto& [parameter, gradient] : gradients)
    parameters.push_back(parameter);
  const auto groups = GroupsOf(update, parameters);
  if (!groups.ok() || count == 1) return whole;
  Names rest = PersistablesWrittenBy(update);
  std::vector<Names> wanted(count);
  for (size_t i = 0; i < groups->size(); ++i) {
    const UpdateGroup& group = (*groups)[i];
    const auto take = [&](const std::string& name) {
      if (rest.erase(name) > 0) wanted[buckets[i]].insert(name);
    };
    take(group.parameter);
    for (const std::string& state : group.states) take(state);
  }
  wanted.back().insert(rest.begin(), rest.end());
  std::vector<ProgramDesc> parts(count, update);
  for (size_t b = 0; b < count; ++b) {
    KeepOnlyWhat(wanted[b], &parts[b]);
    // Nothing is computed twice, nor before its gradient is there.
    if (PersistablesWrittenBy(parts[b]) != wanted[b]) return whole;
    const Names used = VariablesUsedBy(parts[b]);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (buckets[i] != b && used.count(gradients[i].second) > 0) return whole;
  }
  return parts;
}

absl::Status TakeShare(int stage, size_t averages, int rank, int size,
                       TrainProgram* program) {
  ShardPrograms& shards = *program->shards;
  ShardedUpdate made;
  made.stage = stage;
  made.after = shards.update;
  auto& first = shards.update.global().ops;
  auto& last = made.after.global().ops;
  first.erase(first.begin() + static_cast<ptrdiff_t>(averages), first.end());
  last.erase(last.begin(), last.begin() + static_cast<ptrdiff_t>(averages));

  Share share;
  share.rank = rank;
  for (const auto& [parameter, gradient] : program->gradients)
    share.parameters.push_back(parameter);
  PD_ASSIGN_OR_RETURN(const auto groups,
                      GroupsOf(shards.update, share.parameters));
  share.owners = DivideGroups(groups, size);
  // Variables of no parameter, such as counters, are computed by all.
  Names wanted = PersistablesWrittenBy(shards.update),
        held = VariablesUsedBy(made.after);
  const Names written = wanted;
  for (size_t i = 0; i < groups.size(); ++i) {
    made.owners.emplace_back(groups[i].parameter, share.owners[i]);
    if (share.owners[i] == rank) continue;
    wanted.erase(groups[i].parameter);
    for (const std::string& state : groups[i].states) wanted.erase(state);
  }
  if (stage >= 2) CutNorms(share, &shards.update, &made);
  KeepOnlyWhat(wanted, &shards.update);
  if (stage >= 2)
    for (const ProgramDesc* part : {&shards.update, &made.norms})
      PD_RETURN_IF_ERROR(CheckOwnGradients(*program, share, *part));
  for (const ProgramDesc* part :
       {&shards.update, &shards.shard, &made.norms, &made.after})
    for (const std::string& name : VariablesUsedBy(*part)) held.insert(name);
  for (size_t i = 0; i < groups.size(); ++i)
    for (const std::string& state : groups[i].states) {
      made.states.emplace_back(state, share.owners[i]);
      if (held.count(state) == 0) made.absent.insert(state);
    }
  DropAbsent(made.absent, &program->startup);
  shards.sharding = std::move(made);
  return absl::OkStatus();
}

}  // namespace pd
