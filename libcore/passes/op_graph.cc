// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/op_graph.h"

#include <algorithm>
#include <utility>

namespace pd {
namespace {

// Takes it from a sorted list.
void Erase(std::vector<size_t>* list, size_t i) {
  const auto at = std::lower_bound(list->begin(), list->end(), i);
  if (at != list->end() && *at == i) list->erase(at);
}

// Adds it to a sorted list that may hold it already.
void Insert(std::vector<size_t>* list, size_t i) {
  const auto at = std::lower_bound(list->begin(), list->end(), i);
  if (at == list->end() || *at != i) list->insert(at, i);
}

const std::vector<size_t>& NoOps() {
  static const auto* const kNoOps = new std::vector<size_t>;
  return *kNoOps;
}

}  // namespace

std::vector<std::string> NamesOf(const SlotList& slots) {
  std::vector<std::string> all;
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) all.push_back(name);
  return all;
}

OpGraph::OpGraph(const PassContext& context, ProgramDesc* program)
    : context_(context),
      program_(program),
      block_(program->global()),
      removed_(program->global().ops.size(), false) {
  for (const VarDesc& var : block_.vars) vars_[var.name] = &var;
  for (size_t i = 0; i < block_.ops.size(); ++i) Add(i);
  for (size_t b = 1; b < program->blocks.size(); ++b)
    for (const OpDesc& op : program->blocks[b].ops)
      for (const SlotList* slots : {&op.inputs, &op.outputs})
        for (const std::string& name : NamesOf(*slots))
          uses_[name].elsewhere = true;
}

void OpGraph::Add(size_t i) {
  for (const std::string& name : NamesOf(block_.ops[i].inputs))
    Insert(&uses_[name].readers, i);
  for (const std::string& name : NamesOf(block_.ops[i].outputs))
    Insert(&uses_[name].writers, i);
}

void OpGraph::Drop(size_t i) {
  for (const std::string& name : NamesOf(block_.ops[i].inputs))
    Erase(&uses_[name].readers, i);
  for (const std::string& name : NamesOf(block_.ops[i].outputs))
    Erase(&uses_[name].writers, i);
}

const OpGraph::Uses* OpGraph::Find(const std::string& name) const {
  const auto it = uses_.find(name);
  return it == uses_.end() ? nullptr : &it->second;
}

const VarDesc* OpGraph::Var(const std::string& name) const {
  const auto it = vars_.find(name);
  return it == vars_.end() ? nullptr : it->second;
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
  Drop(at);
  block_.ops[at] = std::move(op);
  for (size_t i : others) {
    Drop(i);
    removed_[i] = true;
  }
  Add(at);
}

void OpGraph::Remove(size_t at) {
  Drop(at);
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
  const Uses* uses = Find(name);
  return uses == nullptr || (!uses->elsewhere && uses->writers.empty());
}

bool OpGraph::IsWanted(const std::string& name) const {
  const Uses* uses = Find(name);
  const VarDesc* var = Var(name);
  return context_.keep.count(name) > 0 ||
         (var != nullptr && var->persistable) ||
         (uses != nullptr && uses->elsewhere);
}

void OpGraph::Finish() {
  if (std::find(removed_.begin(), removed_.end(), true) == removed_.end())
    return;
  std::vector<OpDesc> ops;
  for (size_t i = 0; i < block_.ops.size(); ++i)
    if (!removed_[i]) ops.push_back(std::move(block_.ops[i]));
  block_.ops = std::move(ops);
  removed_.assign(block_.ops.size(), false);
  std::vector<VarDesc> vars;
  for (VarDesc& var : block_.vars) {
    const Uses* uses = Find(var.name);
    const bool dropped = uses != nullptr && !uses->elsewhere &&
                         uses->readers.empty() && uses->writers.empty() &&
                         !var.persistable && context_.keep.count(var.name) == 0;
    if (!dropped) vars.push_back(std::move(var));
  }
  block_.vars = std::move(vars);
  vars_.clear();
  for (const VarDesc& var : block_.vars) vars_[var.name] = &var;
}

void SetFusedActivation(const OpDesc* activation, OpDesc* fused) {
  fused->attrs["fuse_activation"] =
      activation == nullptr ? std::string() : activation->type;
  if (activation != nullptr && activation->type == "relu6")
    fused->attrs["fuse_alpha"] = activation->AttrOr("threshold", 6.0f);
}

void CopyOpAttrs(const std::vector<const OpDesc*>& from, OpDesc* to) {
  std::vector<std::string> role_vars;
  for (const OpDesc* op : from) {
    const auto vars = op->AttrOr<std::vector<std::string>>(
        kOpRoleVarAttr, std::vector<std::string>());
    role_vars.insert(role_vars.end(), vars.begin(), vars.end());
    for (const char* name : {"op_role", "op_device", "op_namescope"})
      if (const Attribute* a = op->FindAttr(name)) to->attrs[name] = *a;
  }
  if (!role_vars.empty())
    to->attrs[std::string(kOpRoleVarAttr)] = std::move(role_vars);
}

}  // namespace pd
