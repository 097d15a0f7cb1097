// SPDX-License-Identifier: Apache-2.0
// Which outputs a gradient demands, its maker says: it is asked with every
// absent output named, and what the gradient ops then read is restored.
#include "libcore/autodiff/restore_outputs.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

bool IsAbsent(const OpDesc& op, const std::string& slot) {
  for (const std::string& name : op.Output(slot))
    if (name != kEmptyVar && !name.empty()) return false;
  return true;
}

std::string NewName(const ProgramDesc& program, int32_t block, const OpDesc& op,
                    const std::string& slot) {
  std::string base;
  for (const auto& [other, names] : op.outputs)
    for (const std::string& name : names)
      if (base.empty() && name != kEmptyVar) base = name;
  std::string name = absl::StrCat(base, "@", slot);
  while (program.FindVar(block, name) != nullptr) absl::StrAppend(&name, "@");
  return name;
}

// Absent outputs that may be absent: slot -> a name for it.
std::map<std::string, std::string> Candidates(const ProgramDesc& program,
                                              int32_t block, const OpDef& def,
                                              const OpDesc& op) {
  std::map<std::string, std::string> names;
  for (const SlotDef& slot : def.outputs())
    if (slot.optional && !slot.duplicable && IsAbsent(op, slot.name))
      names[slot.name] = NewName(program, block, op, slot.name);
  return names;
}

// The names among `candidates` that gradient ops read.
std::set<std::string> Demanded(
    const OpRegistry& registry, const std::vector<OpDesc>& grads,
    const std::map<std::string, std::string>& candidates) {
  std::set<std::string> offered, demanded;
  for (const auto& [slot, name] : candidates) offered.insert(name);
  for (const OpDesc& grad : grads) {
    const OpDef* def = registry.Find(grad.type);
    for (const auto& [slot, names] : grad.inputs) {
      if (def == nullptr || def->FindInput(slot) == nullptr) continue;
      for (const std::string& name : names)
        if (offered.count(name) > 0) demanded.insert(name);
    }
  }
  return demanded;
}

// With is_test these compute the same, but leave out what their gradients read.
void KeepForGradient(OpDesc* op) {
  if (!op->AttrOr("is_test", false)) return;
  if (op->type == "rnn") op->attrs["dropout_prob"] = 0.0f;
  if (op->type == "rnn" || op->type == "eigvalsh") op->attrs["is_test"] = false;
}

// Declares outputs of an op as it infers them.
absl::Status Declare(const OpRegistry& registry, const OpDesc& op,
                     int32_t block, const std::set<std::string>& outputs,
                     ProgramDesc* program) {
  ProgramDesc alone;  // the other outputs stay as the program declares them
  alone.version = program->version;
  alone.blocks.resize(1);
  for (const auto& [slot, names] : op.inputs)
    for (const std::string& name : names) {
      const VarDesc* var = program->FindVar(block, name);
      if (var != nullptr && alone.global().FindVar(name) == nullptr)
        alone.global().vars.push_back(*var);
    }
  PD_RETURN_IF_ERROR(InferOp(registry, op, 0, &alone));
  BlockDesc& stored = program->blocks[static_cast<size_t>(block)];
  for (const std::string& name : outputs) {
    VarDesc var;
    if (const VarDesc* inferred = alone.global().FindVar(name)) var = *inferred;
    var.name = name;
    var.stop_gradient = true;
    stored.vars.push_back(std::move(var));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RestoreOutputs(
    const OpRegistry& registry, int32_t block, size_t at,
    const std::function<bool(const std::string&)>& needs_grad,
    ProgramDesc* program) {
  OpDesc& op = program->blocks[static_cast<size_t>(block)].ops[at];
  const OpDef* def = registry.Find(op.type);
  if (def == nullptr || !def->has_grad()) return absl::OkStatus();
  KeepForGradient(&op);
  const auto candidates = Candidates(*program, block, *def, op);
  if (candidates.empty()) return absl::OkStatus();
  OpDesc trial = op;
  for (const auto& [slot, name] : candidates) trial.SetOutput(slot, {name});
  PD_ASSIGN_OR_RETURN(const std::vector<OpDesc> grads,
                      def->grad()(GradRequest{trial, needs_grad}));
  const std::set<std::string> demanded = Demanded(registry, grads, candidates);
  if (demanded.empty()) return absl::OkStatus();
  for (const auto& [slot, name] : candidates)
    if (demanded.count(name) > 0) op.SetOutput(slot, {name});
  return Declare(registry, op, block, demanded, program);
}

std::string RestoreScopes(int32_t block, size_t at, const char* slot,
                          ProgramDesc* program) {
  BlockDesc& stored = program->blocks[static_cast<size_t>(block)];
  OpDesc& op = stored.ops[at];
  if (!IsAbsent(op, slot)) return op.Out(slot);
  VarDesc var;
  var.name = NewName(*program, block, op, slot);
  var.kind = VarKind::kStepScopes;
  op.SetOutput(slot, {var.name});
  stored.vars.push_back(std::move(var));
  return op.Out(slot);
}

}  // namespace pd
