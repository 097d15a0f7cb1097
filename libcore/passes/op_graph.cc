// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/op_graph.h"

#include <algorithm>
#include <utility>

#include "libcore/ir/op_names.h"
#include "libcore/program/outer_names.h"

namespace pd {
namespace {

// Adds it to a sorted list that may hold it already.
void Insert(std::vector<size_t>* list, size_t i) {
  const auto at = std::lower_bound(list->begin(), list->end(), i);
  if (at == list->end() || *at != i) list->insert(at, i);
}

const std::vector<size_t>& NoOps() {
  static const auto* const kNoOps = new std::vector<size_t>;
  return *kNoOps;
}

constexpr int32_t kSeveralBlocks = -1;
constexpr int kMaxDepth = 64;

// Blocks that are a gradient block or have one, and the blocks in these.
std::vector<bool> BlocksOfGradients(const ProgramDesc& program) {
  const auto size = static_cast<int32_t>(program.blocks.size());
  std::vector<bool> found(program.blocks.size(), false);
  for (int32_t b = 1; b < size; ++b) {
    const int32_t forward = program.blocks[At(b)].forward_block_idx;
    if (forward <= 0) continue;
    found[At(b)] = true;
    if (forward < size) found[At(forward)] = true;
  }
  std::vector<bool> all = found;
  for (int32_t b = 1; b < size; ++b) {
    int32_t outer = b;
    for (int depth = 0; outer > 0 && outer < size && !all[At(b)]; ++depth) {
      all[At(b)] = found[At(outer)] || depth == kMaxDepth;
      outer = program.blocks[At(outer)].parent_idx;
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> NamesOf(const SlotList& slots) {
  std::vector<std::string> all;
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) all.push_back(name);
  return all;
}

void ForEachUse(const ProgramDesc& program, const OpDesc& op,
                const std::function<void(const std::string&)>& read,
                const std::function<void(const std::string&)>& write) {
  if (program.blocks.size() > 1 && HasBlocks(op)) {
    const OuterNames names = OuterNamesOf(program, op);
    std::for_each(names.reads.begin(), names.reads.end(), read);
    std::for_each(names.writes.begin(), names.writes.end(), write);
    return;
  }
  for (const std::string& name : NamesOf(op.inputs)) read(name);
  for (const std::string& name : NamesOf(op.outputs)) write(name);
}

NameBlocks::NameBlocks(const ProgramDesc& program) {
  if (program.blocks.size() == 1) return;  // no variable is elsewhere
  const auto add = [](const std::string& name, int32_t block, Blocks* blocks) {
    const auto [at, is_new] = blocks->emplace(name, block);
    if (!is_new && at->second != block) at->second = kSeveralBlocks;
  };
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const auto block = static_cast<int32_t>(b);
    for (const OpDesc& op : program.blocks[b].ops) {
      for (const std::string& name : NamesOf(op.inputs))
        add(name, block, &named_);
      for (const std::string& name : NamesOf(op.outputs)) {
        add(name, block, &named_);
        add(name, block, &written_);
      }
      // A recurrent op knows the states of its block by attributes.
      if (!HasBlocks(op)) continue;
      for (const auto& [attr, value] : op.attrs)
        if (const auto* list = std::get_if<std::vector<std::string>>(&value))
          for (const std::string& name : *list) add(name, block, &named_);
    }
  }
}

bool NameBlocks::IsElsewhere(const Blocks& blocks, const std::string& name,
                             int32_t block) {
  const auto at = blocks.find(name);
  return at != blocks.end() && at->second != block;
}

OpGraph::OpGraph(const PassContext& context, ProgramDesc* program)
    : OpGraph(context, program, 0, std::make_shared<NameBlocks>(*program)) {}

OpGraph::OpGraph(const PassContext& context, ProgramDesc* program,
                 int32_t block, std::shared_ptr<const NameBlocks> names)
    : context_(context),
      program_(program),
      index_(block),
      block_(program->blocks[At(block)]),
      names_(std::move(names)),
      removed_(block_.ops.size(), false) {}

void OpGraph::MakeUses() const {
  if (has_uses_) return;
  has_uses_ = true;
  for (size_t i = 0; i < block_.ops.size(); ++i) Add(i);
}

void OpGraph::MakeVars() const {
  if (has_vars_) return;
  has_vars_ = true;
  vars_.clear();
  for (const VarDesc& var : block_.vars) vars_[var.name] = &var;
}

void OpGraph::Add(size_t i) const {
  ForEachUse(
      *program_, block_.ops[i],
      [&](const std::string& name) { Insert(&uses_[name].readers, i); },
      [&](const std::string& name) { Insert(&uses_[name].writers, i); });
}

void OpGraph::Drop(std::vector<size_t> ops) {
  MakeUses();
  std::sort(ops.begin(), ops.end());
  std::set<Uses*> touched;
  const auto touch = [&](const std::string& name) {
    const auto uses = uses_.find(name);
    if (uses != uses_.end()) touched.insert(&uses->second);
  };
  for (size_t i : ops) ForEachUse(*program_, block_.ops[i], touch, touch);
  const auto is_dropped = [&ops](size_t i) {
    return std::binary_search(ops.begin(), ops.end(), i);
  };
  for (Uses* uses : touched)
    for (std::vector<size_t>* list : {&uses->readers, &uses->writers}) {
      const auto first =
          std::lower_bound(list->begin(), list->end(), ops.front());
      const auto last = std::upper_bound(first, list->end(), ops.back());
      list->erase(std::remove_if(first, last, is_dropped), last);
    }
}

const OpGraph::Uses* OpGraph::Find(const std::string& name) const {
  MakeUses();
  const auto it = uses_.find(name);
  return it == uses_.end() ? nullptr : &it->second;
}

const VarDesc* OpGraph::Var(const std::string& name) const {
  MakeVars();
  const auto it = vars_.find(name);
  if (it != vars_.end()) return it->second;
  return index_ == 0 ? nullptr : program_->FindVar(block_.parent_idx, name);
}

int OpGraph::OnlyReader(const std::string& name) const {
  const Uses* uses = Find(name);
  return uses == nullptr || uses->writers.size() != 1 ||
                 uses->readers.size() != 1 || IsWanted(name)
             ? kNone
             : static_cast<int>(uses->readers.front());
}

const std::vector<size_t>& OpGraph::Readers(const std::string& name) const {
  const Uses* uses = Find(name);
  return uses == nullptr ? NoOps() : uses->readers;
}

int OpGraph::OnlyWriter(const std::string& name) const {
  const Uses* uses = Find(name);
  return uses == nullptr || uses->writers.size() != 1
             ? -1
             : static_cast<int>(uses->writers.front());
}

bool OpGraph::IsWrittenBetween(const std::vector<std::string>& names,
                               size_t first, size_t last) const {
  for (const std::string& name : names) {
    const Uses* uses = Find(name);
    if (uses == nullptr) continue;
    const auto& writers = uses->writers;
    const auto next = std::upper_bound(writers.begin(), writers.end(), first);
    if (next != writers.end() && *next < last) return true;
  }
  return false;
}

void OpGraph::Replace(size_t at, OpDesc op, const std::vector<size_t>& others) {
  for (size_t i : others) removed_[i] = true;
  std::vector<size_t> dropped = others;
  dropped.push_back(at);
  Drop(std::move(dropped));
  CompleteAttrs(context_, &op);
  block_.ops[at] = std::move(op);
  Add(at);
}

void OpGraph::Remove(size_t at) {
  Drop({at});
  removed_[at] = true;
}

void OpGraph::Declare(const VarDesc& var) {
  if (Var(var.name) != nullptr) return;
  // Pointers stay right unless the list has moved.
  const VarDesc* const before = block_.vars.data();
  block_.vars.push_back(var);
  if (block_.vars.data() == before)
    vars_[var.name] = &block_.vars.back();
  else
    for (const VarDesc& known : block_.vars) vars_[known.name] = &known;
}

const std::vector<size_t>& OpGraph::Writers(const std::string& name) const {
  const Uses* uses = Find(name);
  return uses == nullptr ? NoOps() : uses->writers;
}

bool OpGraph::IsParameter(const std::string& name) const {
  const VarDesc* var = Var(name);
  if (var == nullptr) return false;
  if (var->persistable) return true;
  const int writer = OnlyWriter(name);
  if (writer == kNone || op(At(writer)).type != "cast") return false;
  const VarDesc* from = Var(op(At(writer)).In("X"));
  return from != nullptr && from->persistable;
}

bool OpGraph::IsUnwritten(const std::string& name) const {
  return Writers(name).empty() && !names_->IsWrittenElsewhere(name, index_);
}

bool OpGraph::IsWanted(const std::string& name) const {
  if (context_.keep.count(name) > 0 || names_->IsNamedElsewhere(name, index_))
    return true;
  MakeVars();
  const auto it = vars_.find(name);
  return it == vars_.end() ? index_ != 0 : it->second->persistable;
}

void OpGraph::Finish() {
  if (std::find(removed_.begin(), removed_.end(), true) == removed_.end())
    return;
  size_t kept = 0;
  for (size_t i = 0; i < block_.ops.size(); ++i) {
    if (removed_[i]) continue;
    if (kept != i) block_.ops[kept] = std::move(block_.ops[i]);
    ++kept;
  }
  block_.ops.resize(kept);
  removed_.assign(kept, false);
  const auto is_dropped = [this](const VarDesc& var) {
    const Uses* uses = Find(var.name);
    return uses != nullptr && uses->readers.empty() && uses->writers.empty() &&
           !var.persistable && context_.keep.count(var.name) == 0 &&
           !names_->IsNamedElsewhere(var.name, index_);
  };
  block_.vars.erase(
      std::remove_if(block_.vars.begin(), block_.vars.end(), is_dropped),
      block_.vars.end());
  has_vars_ = false;
}

void ForEachGraph(const PassContext& context,
                  const std::set<std::string>& types,
                  const std::function<void(OpGraph* graph)>& rewrite,
                  ProgramDesc* program) {
  std::shared_ptr<const NameBlocks> names;
  std::vector<bool> left_out;
  for (size_t b = 0; b < program->blocks.size(); ++b) {
    const std::vector<OpDesc>& ops = program->blocks[b].ops;
    if (std::none_of(ops.begin(), ops.end(), [&](const OpDesc& op) {
          return types.count(op.type) > 0;
        }))
      continue;
    if (names == nullptr) {
      names = std::make_shared<NameBlocks>(*program);
      left_out = BlocksOfGradients(*program);
    }
    if (left_out[b]) continue;
    OpGraph graph(context, program, static_cast<int32_t>(b), names);
    rewrite(&graph);
    graph.Finish();
  }
}

void CompleteAttrs(const PassContext& context, OpDesc* op) {
  if (context.registry == nullptr) return;
  const OpDef* def = context.registry->Find(op->type);
  // An attribute of another type is an error when the op is bound.
  if (def != nullptr) def->NormalizeAttrs(op).IgnoreError();
}

void SetFusedActivation(const OpDesc* activation, OpDesc* fused) {
  fused->attrs["fuse_activation"] =
      activation == nullptr ? std::string() : activation->type;
  if (activation != nullptr && activation->type == "relu6")
    fused->attrs["fuse_alpha"] = activation->Attr<float>("threshold");
}

void CopyOpAttrs(const std::vector<const OpDesc*>& from, OpDesc* to) {
  std::vector<std::string> role_vars;
  for (const OpDesc* op : from) {
    const auto vars = op->AttrOr<std::vector<std::string>>(
        kOpRoleVarAttr, std::vector<std::string>());
    role_vars.insert(role_vars.end(), vars.begin(), vars.end());
    for (const char* name : {"op_role", "op_device", kNameScopeAttr})
      if (const Attribute* a = op->FindAttr(name)) to->attrs[name] = *a;
  }
  if (!role_vars.empty())
    to->attrs[std::string(kOpRoleVarAttr)] = std::move(role_vars);
}

}  // namespace pd
