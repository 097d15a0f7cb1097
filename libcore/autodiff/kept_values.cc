// SPDX-License-Identifier: Apache-2.0
#include "libcore/autodiff/kept_values.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "libcore/program/outer_names.h"

namespace pd {
namespace {

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

bool Holds(const SlotList& slots, const std::string& name) {
  for (const auto& [slot, names] : slots)
    if (Holds(names, name)) return true;
  return false;
}

// The block that an op runs; 0: none.
int32_t SubBlock(const OpDesc& op) {
  const Attribute* attr = op.FindAttr("sub_block");
  const auto* ref = attr == nullptr ? nullptr : std::get_if<BlockRef>(attr);
  return ref == nullptr ? 0 : ref->index;
}

}  // namespace

KeptValues::KeptValues(ProgramDesc* program, int32_t index,
                       std::set<std::string> carried)
    : program_(program), block_(index), carried_(std::move(carried)) {
  for (const VarDesc& var : block().vars) local_.insert(var.name);
  const std::vector<OpDesc>& ops = block().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const OuterNames names = OuterNamesOf(*program_, ops[i]);
    for (const std::string& name : names.reads) first_read_.emplace(name, i);
    for (const std::string& name : names.writes) {
      const VarDesc* var = program_->FindVar(block_, name);
      // An array's elements are written one by one; scopes belong to their op.
      if (var != nullptr && var->kind == VarKind::kLodTensor)
        writes_[name].push_back(i);
    }
  }
}

bool KeptValues::Overwrites(size_t at, const std::string& name) const {
  const auto writes = writes_.find(name);
  if (writes == writes_.end()) return false;
  if (block_ != 0 && local_.count(name) == 0) return true;
  const auto read = first_read_.find(name);
  return writes->second.front() < at ||
         (read != first_read_.end() && read->second <= at);
}

std::string KeptValues::Before(size_t at, const std::string& name) {
  const auto writes = writes_.find(name);
  if (writes == writes_.end()) return name;
  const auto& ops = writes->second;
  return Read(name, std::lower_bound(ops.begin(), ops.end(), at) - ops.begin());
}

std::string KeptValues::After(size_t at, const std::string& name) {
  const auto writes = writes_.find(name);
  if (writes == writes_.end()) return name;
  const auto& ops = writes->second;
  return Read(name, std::upper_bound(ops.begin(), ops.end(), at) - ops.begin());
}

std::string KeptValues::Read(const std::string& name, size_t version) {
  const auto writes = writes_.find(name);
  if (writes == writes_.end()) return name;
  const bool outer = block_ != 0 && local_.count(name) == 0;
  if (carried_.count(name) > 0) {
    if (version == 0) return name;
  } else if (!outer && version == writes->second.size()) {
    return name;
  }
  std::string& copy = copies_[{name, version}];
  if (!copy.empty()) return copy;
  copy = absl::StrCat(name, "@KEPT@", block_, "@", version);
  while (program_->FindVar(block_, copy) != nullptr)
    absl::StrAppend(&copy, "@");
  VarDesc var = *program_->FindVar(block_, name);
  var.name = copy;
  var.persistable = var.is_parameter = var.need_check_feed = false;
  block().vars.push_back(std::move(var));
  return copy;
}

void KeptValues::Redirect(size_t at, OpDesc* grad) {
  // The other blocks stay where they are; variables are added to this one.
  const OpDesc& forward = block().ops[at];
  const bool runs_block = SubBlock(*grad) > 0;
  for (auto& [slot, names] : grad->inputs) {
    // By the other names such an op finds gradients.
    if (runs_block && slot != "Cond") continue;
    for (std::string& name : names) {
      const auto writes = writes_.find(name);
      if (writes == writes_.end()) continue;
      const bool read = Holds(forward.inputs, name);
      const bool written = Holds(forward.outputs, name);
      // Statistics that an op updates (batch norm's): its gradient reads them
      // only where it does not.
      const VarDesc* var = program_->FindVar(block_, name);
      if (read && written && var->persistable) continue;
      const bool after =
          written && (!read || Holds(forward.Output(slot), name));
      if (read || written) name = after ? After(at, name) : Before(at, name);
    }
  }
}

void KeptValues::RedirectBlock(size_t at, int32_t gradient) {
  RedirectFree(at, gradient, {});
}

// `bound`: names that the blocks in between declare or look after.
void KeptValues::RedirectFree(size_t at, int32_t gradient,
                              std::set<std::string> bound) {
  BlockDesc& stored = program_->blocks[static_cast<size_t>(gradient)];
  for (const VarDesc& var : stored.vars) bound.insert(var.name);
  const int32_t forward = stored.forward_block_idx;
  if (forward > 0 && static_cast<size_t>(forward) < program_->blocks.size()) {
    const BlockDesc& ran = program_->blocks[static_cast<size_t>(forward)];
    for (const VarDesc& var : ran.vars) bound.insert(var.name);
    for (const OpDesc& op : ran.ops)
      for (const std::string& name : OuterNamesOf(*program_, op).writes)
        bound.insert(name);
  }
  for (OpDesc& op : stored.ops) {
    const int32_t nested = SubBlock(op);
    for (auto& [slot, names] : op.inputs) {
      if (nested > 0 && slot != "Cond") continue;
      for (std::string& name : names)
        if (bound.count(name) == 0) name = Before(at, name);
    }
    if (nested > 0 && nested != gradient) RedirectFree(at, nested, bound);
  }
}

void KeptValues::Insert() {
  std::map<size_t, std::vector<OpDesc>> before;  // op -> copies ahead of it
  for (const auto& [value, copy] : copies_) {
    const auto& [name, version] = value;
    const std::vector<size_t>& writes = writes_[name];
    OpDesc op;
    op.type = "assign";
    op.SetInput("X", {name});
    op.SetOutput("Out", {copy});
    op.attrs[std::string(kOpRoleAttr)] = static_cast<int32_t>(kRoleForward);
    before[version < writes.size() ? writes[version] : block().ops.size()]
        .push_back(std::move(op));
  }
  std::vector<OpDesc>& ops = block().ops;
  for (auto it = before.rbegin(); it != before.rend(); ++it)
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(it->first),
               it->second.begin(), it->second.end());
  copies_.clear();
}

}  // namespace pd
