// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/prune.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/program/test_mode.h"

namespace pd {
namespace {

// Of fetch ops.
constexpr char kClassNamesAttr[] = "class_names";

using Names = std::set<std::string>;

bool IsTrainingOp(const OpDesc& op) {
  const auto role = RoleOf(op);
  return (role & (kRoleBackward | kRoleOptimize | kRoleLRSched)) != 0;
}

// Sub-blocks that the attributes of `op` name.
std::vector<int32_t> SubBlocks(const OpDesc& op) {
  std::vector<int32_t> blocks;
  for (const auto& [name, value] : op.attrs) {
    if (const auto* ref = std::get_if<BlockRef>(&value))
      blocks.push_back(ref->index);
    if (const auto* refs = std::get_if<BlockRefs>(&value))
      blocks.insert(blocks.end(), refs->indices.begin(), refs->indices.end());
  }
  return blocks;
}

void AddNames(const SlotList& slots, Names* names) {
  for (const auto& slot : slots)
    for (const std::string& name : slot.second)
      if (name != kEmptyVar) names->insert(name);
}

// Attributes may be given by variables too.
void AddAttrNames(const OpDesc& op, Names* names) {
  for (const auto& [attr, value] : op.attrs) {
    if (const auto* ref = std::get_if<VarRef>(&value)) names->insert(ref->name);
    if (const auto* refs = std::get_if<VarRefs>(&value))
      names->insert(refs->names.begin(), refs->names.end());
  }
}

// Variables that ops read and write, including those of the blocks around them
// that their sub-blocks read and write.
class Traffic {
 public:
  explicit Traffic(const ProgramDesc& program)
      : blocks_(program.blocks.size()) {
    // Sub-blocks come after their op's block: from the last, each is done once.
    for (size_t b = program.blocks.size(); b-- > 1;) {
      ReadsAndWrites all;
      for (const OpDesc& op : program.blocks[b].ops) Add(op, &all);
      for (const VarDesc& var : program.blocks[b].vars) {
        all.reads.erase(var.name);
        all.writes.erase(var.name);
      }
      blocks_[b] = std::move(all);
    }
  }

  struct ReadsAndWrites {
    Names reads, writes;
  };
  ReadsAndWrites Of(const OpDesc& op) const {
    ReadsAndWrites all;
    Add(op, &all);
    return all;
  }

 private:
  void Add(const OpDesc& op, ReadsAndWrites* all) const {
    AddNames(op.inputs, &all->reads);
    AddAttrNames(op, &all->reads);
    AddNames(op.outputs, &all->writes);
    for (const int32_t index : SubBlocks(op)) {
      const ReadsAndWrites& sub = blocks_[static_cast<size_t>(index)];
      all->reads.insert(sub.reads.begin(), sub.reads.end());
      all->writes.insert(sub.writes.begin(), sub.writes.end());
    }
  }
  std::vector<ReadsAndWrites> blocks_;
};

// Persistables have values before the first op, and tensor arrays and the like
// start empty.
bool NeedsMaker(const VarDesc* var) {
  return var == nullptr ||
         (!var->persistable && var->kind == VarKind::kLodTensor);
}

// True when `op` changes the fed variable `name`; false when it only makes the
// value that is fed instead. A sub-block that does not run changes nothing.
bool Overwrites(const ProgramDesc& program, const OpDesc& op,
                const Names& reads, const std::string& name) {
  const VarDesc* var = program.global().FindVar(name);
  return reads.count(name) != 0 || !SubBlocks(op).empty() ||
         (var != nullptr && var->need_check_feed);
}

std::string Suggestion(const ProgramDesc& program, const std::string& name) {
  std::vector<std::string> known;
  for (const VarDesc& var : program.global().vars) known.push_back(var.name);
  const std::string nearest = Nearest(name, known);
  return nearest.empty() ? ""
                         : absl::StrCat("; the nearest is '", nearest, "'");
}

absl::Status CheckNames(const ProgramDesc& program, const char* what,
                        const std::vector<std::string>& names) {
  Names seen;
  for (const std::string& name : names) {
    if (program.global().FindVar(name) == nullptr)
      return NotFound("%s '%s' is not a variable of the program%s", what, name,
                      Suggestion(program, name));
    if (!seen.insert(name).second)
      return InvalidArgument("%s '%s' is named twice", what, name);
  }
  return absl::OkStatus();
}

// New numbers of the blocks that ops reach from block 0; -1 for the others.
std::vector<int32_t> NumberReachable(const ProgramDesc& program) {
  std::vector<int32_t> numbers(program.blocks.size(), -1);
  std::vector<bool> reached(program.blocks.size(), false);
  reached[0] = true;
  // Sub-blocks come after their op's block, so one pass reaches all.
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    if (!reached[b]) continue;
    for (const OpDesc& op : program.blocks[b].ops)
      for (const int32_t sub : SubBlocks(op))
        reached[static_cast<size_t>(sub)] = true;
  }
  int32_t next = 0;
  for (size_t b = 0; b < numbers.size(); ++b)
    if (reached[b]) numbers[b] = next++;
  return numbers;
}

void RenumberOps(const std::vector<int32_t>& numbers, BlockDesc* block) {
  const auto renumber = [&](int32_t* index) {
    *index = numbers[static_cast<size_t>(*index)];
  };
  for (OpDesc& op : block->ops) {
    for (auto& [name, value] : op.attrs) {
      if (auto* ref = std::get_if<BlockRef>(&value)) renumber(&ref->index);
      if (auto* refs = std::get_if<BlockRefs>(&value))
        for (int32_t& index : refs->indices) renumber(&index);
    }
  }
}

void DropUnreachableBlocks(ProgramDesc* program) {
  const std::vector<int32_t> numbers = NumberReachable(*program);
  std::vector<BlockDesc> kept;
  for (size_t b = 0; b < numbers.size(); ++b) {
    if (numbers[b] < 0) continue;
    BlockDesc block = std::move(program->blocks[b]);
    block.idx = numbers[b];
    for (int32_t* index : {&block.parent_idx, &block.forward_block_idx})
      if (*index >= 0) *index = numbers[static_cast<size_t>(*index)];
    RenumberOps(numbers, &block);
    kept.push_back(std::move(block));
  }
  program->blocks = std::move(kept);
}

}  // namespace

void DropUnused(const std::vector<std::string>& keep, ProgramDesc* program) {
  DropUnreachableBlocks(program);
  Names used(keep.begin(), keep.end());
  for (const BlockDesc& block : program->blocks) {
    for (const OpDesc& op : block.ops) {
      AddNames(op.inputs, &used);
      AddNames(op.outputs, &used);
      AddAttrNames(op, &used);
    }
  }
  for (BlockDesc& block : program->blocks)
    block.vars.erase(std::remove_if(block.vars.begin(), block.vars.end(),
                                    [&](const VarDesc& var) {
                                      return used.count(var.name) == 0;
                                    }),
                     block.vars.end());
}

ProgramDesc CloneForTest(const ProgramDesc& program) {
  ProgramDesc clone = program;
  for (BlockDesc& block : clone.blocks) {
    block.ops.erase(
        std::remove_if(block.ops.begin(), block.ops.end(), IsTrainingOp),
        block.ops.end());
    for (OpDesc& op : block.ops) {
      if (!HasTestMode(op)) continue;
      op.attrs["is_test"] = true;
      // Batch norms keep workspace for their gradient there, also where the
      // network computes with a gradient.
      for (SlotList* slots : {&op.inputs, &op.outputs})
        slots->erase(std::remove_if(slots->begin(), slots->end(),
                                    [](const auto& slot) {
                                      return slot.first == "ReserveSpace";
                                    }),
                     slots->end());
    }
  }
  std::vector<std::string> feeds;  // stay, so that the interface is the same
  for (const VarDesc& var : clone.global().vars)
    if (var.need_check_feed) feeds.push_back(var.name);
  DropUnused(feeds, &clone);
  return clone;
}

absl::StatusOr<ProgramDesc> Prune(const ProgramDesc& program,
                                  const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches) {
  PD_RETURN_IF_ERROR(CheckNames(program, "feed", feeds));
  PD_RETURN_IF_ERROR(CheckNames(program, "fetch", fetches));
  const Names fed(feeds.begin(), feeds.end());
  Names needed(fetches.begin(), fetches.end());
  const auto& ops = program.global().ops;
  const Traffic traffic(program);
  std::vector<bool> kept(ops.size(), false);
  for (size_t i = ops.size(); i-- > 0;) {
    const OpDesc& op = ops[i];
    if (IsFeedOrFetch(op)) continue;
    const auto [reads, writes] = traffic.Of(op);
    for (const std::string& name : writes)
      if (needed.count(name) != 0 &&
          (fed.count(name) == 0 || Overwrites(program, op, reads, name)))
        kept[i] = true;
    if (kept[i]) needed.insert(reads.begin(), reads.end());
  }

  ProgramDesc pruned = program;
  pruned.global().ops.clear();
  Names made = fed;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!kept[i]) continue;
    const auto [reads, writes] = traffic.Of(ops[i]);
    for (const std::string& name : reads) {
      const VarDesc* var = program.global().FindVar(name);
      if (made.count(name) == 0 && NeedsMaker(var))
        return InvalidArgument(
            "op %d '%s' reads '%s', which is neither fed nor made", i,
            ops[i].type, name);
    }
    made.insert(writes.begin(), writes.end());
    pruned.global().ops.push_back(ops[i]);
  }
  for (const std::string& name : fetches)
    if (made.count(name) == 0 && NeedsMaker(program.global().FindVar(name)))
      return InvalidArgument("fetch '%s' is neither fed nor made by an op",
                             name);
  std::vector<std::string> keep = feeds;
  keep.insert(keep.end(), fetches.begin(), fetches.end());
  DropUnused(keep, &pruned);
  return pruned;
}

absl::StatusOr<std::vector<std::string>> FeedsNeeded(
    const ProgramDesc& program, const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches) {
  PD_ASSIGN_OR_RETURN(const ProgramDesc pruned, Prune(program, feeds, fetches));
  Names read(fetches.begin(), fetches.end());
  for (const BlockDesc& block : pruned.blocks)
    for (const OpDesc& op : block.ops)
      for (const auto& [slot, names] : op.inputs)
        read.insert(names.begin(), names.end());
  std::vector<std::string> needed;
  for (const std::string& name : feeds)
    if (read.count(name) > 0) needed.push_back(name);
  return needed;
}

absl::Status AddFeedFetch(const FeedFetch& names, ProgramDesc* program) {
  BlockDesc& block = program->global();
  for (const VarDesc& var : block.vars)
    if (var.kind == VarKind::kFeedMinibatch || var.kind == VarKind::kFetchList)
      return InvalidArgument("the program has feeds and fetches already: '%s'",
                             var.name);
  for (const char* name : {"feed", "fetch"})
    if (block.FindVar(name) != nullptr)
      return InvalidArgument(
          "variable '%s' has a name that feeds and fetches need", name);
  PD_RETURN_IF_ERROR(CheckNames(*program, "feed", names.feeds));
  PD_RETURN_IF_ERROR(CheckNames(*program, "fetch", names.fetches));

  const auto holder = [&](const char* name, VarKind kind) {
    VarDesc var;
    var.name = name;
    var.kind = kind;
    var.persistable = true;
    var.omitted = kOmitsTensor | kOmitsLodLevel | kOmitsStopGradient;
    block.vars.push_back(std::move(var));
  };
  const auto op = [](const char* type, const std::string& in,
                     const std::string& out, size_t column) {
    OpDesc desc;
    desc.type = type;
    desc.SetInput("X", {in});
    desc.SetOutput("Out", {out});
    desc.attrs["col"] = static_cast<int32_t>(column);
    desc.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleForward};
    return desc;
  };
  std::vector<OpDesc> feed_ops;
  for (size_t i = 0; i < names.feeds.size(); ++i) {
    block.FindVar(names.feeds[i])->need_check_feed = true;
    feed_ops.push_back(op("feed", "feed", names.feeds[i], i));
  }
  block.ops.insert(block.ops.begin(), feed_ops.begin(), feed_ops.end());
  for (size_t i = 0; i < names.fetches.size(); ++i) {
    block.ops.push_back(op("fetch", names.fetches[i], "fetch", i));
    const auto classes = names.classes.find(names.fetches[i]);
    if (classes != names.classes.end() && !classes->second.empty())
      block.ops.back().attrs[kClassNamesAttr] = classes->second;
  }
  holder("feed", VarKind::kFeedMinibatch);
  holder("fetch", VarKind::kFetchList);
  return absl::OkStatus();
}

absl::StatusOr<FeedFetch> StripFeedFetch(ProgramDesc* program) {
  BlockDesc& block = program->global();
  FeedFetch names;
  for (const OpDesc& op : block.ops) {
    const bool feed = op.type == "feed";
    if (!feed && op.type != "fetch") continue;
    const std::string& name = feed ? op.Out("Out") : op.In("X");
    const auto column = op.AttrOr<int32_t>("col", 0);
    if (name.empty() || column < 0)
      return InvalidArgument("op '%s' of column %d names no variable", op.type,
                             column);
    auto& list = feed ? names.feeds : names.fetches;
    if (list.size() <= static_cast<size_t>(column))
      list.resize(static_cast<size_t>(column) + 1);
    std::string& place = list[static_cast<size_t>(column)];
    if (!place.empty())
      return InvalidArgument("column %d of op '%s' holds '%s' and '%s'", column,
                             op.type, place, name);
    place = name;
    auto classes = op.AttrOr<std::vector<std::string>>(kClassNamesAttr, {});
    if (!feed && !classes.empty()) names.classes[name] = std::move(classes);
  }
  for (const auto& [list, type] : {std::make_pair(&names.feeds, "feed"),
                                   std::make_pair(&names.fetches, "fetch")})
    for (size_t i = 0; i < list->size(); ++i)
      if ((*list)[i].empty())
        return InvalidArgument("column %d of %d of op '%s' is missing", i,
                               list->size(), type);
  block.ops.erase(
      std::remove_if(block.ops.begin(), block.ops.end(),
                     [](const OpDesc& op) { return IsFeedOrFetch(op); }),
      block.ops.end());
  block.vars.erase(std::remove_if(block.vars.begin(), block.vars.end(),
                                  [](const VarDesc& var) {
                                    return var.kind ==
                                               VarKind::kFeedMinibatch ||
                                           var.kind == VarKind::kFetchList;
                                  }),
                   block.vars.end());
  return names;
}

}  // namespace pd
