// SPDX-License-Identifier: Apache-2.0
// Ops are visited from the last to the first. Every gradient written to a
// variable is a contribution; when the op that made the variable is reached,
// its contributions are complete and are summed.
#include "libcore/autodiff/backward.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

// A place where a gradient op writes (part of) a variable's gradient.
struct Contribution {
  size_t op;    // in Backward::ops_
  size_t slot;  // of its outputs
  size_t at;    // in the slot
};

class Backward {
 public:
  Backward(const OpRegistry& registry, const BackwardOptions& options,
           ProgramDesc* program)
      : registry_(registry),
        options_(options),
        program_(program),
        block_(program->global()) {}

  absl::StatusOr<std::map<std::string, std::string>> Run();

 private:
  absl::Status CheckNames() const;
  void FindDifferentiable();
  bool IsLeaf(const VarDesc& var) const;
  void StartFromTargets();
  absl::Status Visit(const OpDesc& op);
  absl::Status AddGradOp(OpDesc grad);
  void Finish(const std::string& variable);
  void FillMissing(const OpDesc& forward, const OpDesc& grad);

  const OpRegistry& registry_;
  const BackwardOptions& options_;
  ProgramDesc* program_;
  const BlockDesc& block_;
  std::set<std::string> differentiable_;
  std::map<std::string, std::vector<Contribution>> contributions_;
  std::set<std::string> ready_;  // variables whose gradient is complete
  std::vector<OpDesc> ops_;
};

absl::Status Backward::CheckNames() const {
  for (const auto& [target, cotangent] : options_.targets) {
    if (block_.FindVar(target) == nullptr)
      return NotFound("target '%s' of the gradient does not exist", target);
    if (!cotangent.empty() && block_.FindVar(cotangent) == nullptr)
      return NotFound("cotangent '%s' does not exist", cotangent);
  }
  for (const std::string& name : options_.wrt)
    if (block_.FindVar(name) == nullptr)
      return NotFound("variable '%s' to differentiate by does not exist", name);
  return absl::OkStatus();
}

bool Backward::IsLeaf(const VarDesc& var) const {
  if (options_.no_grad.count(var.name) > 0) return false;
  return var.is_parameter && !var.stop_gradient && IsFloating(var.dtype);
}

// Everything that depends on a leaf through ops that have gradients.
void Backward::FindDifferentiable() {
  std::map<std::string, const VarDesc*> vars;
  for (const VarDesc& var : block_.vars) {
    vars[var.name] = &var;
    if (IsLeaf(var)) differentiable_.insert(var.name);
  }
  differentiable_.insert(options_.wrt.begin(), options_.wrt.end());
  for (const OpDesc& op : block_.ops) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || !def->has_grad()) continue;
    bool depends = false;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        depends = depends || differentiable_.count(name) > 0;
    if (!depends) continue;
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        const auto var = vars.find(name);
        if (var == vars.end() || var->second->stop_gradient ||
            !(IsFloating(var->second->dtype) ||
              IsComplex(var->second->dtype)) ||
            options_.no_grad.count(name) > 0)
          continue;
        differentiable_.insert(name);
      }
    }
  }
}

void Backward::StartFromTargets() {
  for (const auto& [target, cotangent] : options_.targets) {
    OpDesc op;
    if (cotangent.empty()) {
      op.type = "fill_any_like";
      op.SetInput("X", {target});
      op.attrs["value"] = 1.0f;
      op.attrs["dtype"] = static_cast<int32_t>(-1);
    } else {
      op.type = "assign";
      op.SetInput("X", {cotangent});
    }
    op.attrs[std::string(kOpRoleAttr)] =
        static_cast<int32_t>(kRoleBackward | kRoleLoss);
    op.SetOutput("Out", {GradName(target)});
    contributions_[target].push_back({ops_.size(), 0, 0});
    ops_.push_back(std::move(op));
  }
}

absl::Status Backward::Visit(const OpDesc& op) {
  bool wanted = false;
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      wanted = wanted || contributions_.count(name) > 0;
  if (!wanted) return absl::OkStatus();
  std::vector<std::string> outputs;
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (contributions_.count(name) > 0) outputs.push_back(name);
  for (const std::string& name : outputs) Finish(name);
  bool depends = false;
  for (const auto& [slot, names] : op.inputs)
    for (const std::string& name : names)
      depends = depends || differentiable_.count(name) > 0;
  if (depends) {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(op.type));
    if (!def->says_about_grad())
      return Unimplemented("op '%s' has no gradient", op.type);
    if (def->has_grad()) {
      GradRequest request{op, [&](const std::string& name) {
                            return differentiable_.count(name) > 0;
                          }};
      PD_ASSIGN_OR_RETURN(std::vector<OpDesc> grads, def->grad()(request));
      for (OpDesc& grad : grads) {
        FillMissing(op, grad);
        PD_RETURN_IF_ERROR(AddGradOp(std::move(grad)));
      }
    }
  }
  return absl::OkStatus();
}

// An output that nobody used has the gradient zero.
void Backward::FillMissing(const OpDesc& forward, const OpDesc& grad) {
  std::map<std::string, std::string> unused;  // gradient -> output
  for (const auto& [slot, outputs] : forward.outputs)
    for (const std::string& output : outputs)
      if (ready_.count(output) == 0) unused[GradName(output)] = output;
  for (const auto& [slot, names] : grad.inputs) {
    for (const std::string& name : names) {
      const auto missing = unused.find(name);
      if (missing == unused.end()) continue;
      OpDesc zeros;
      zeros.type = "fill_any_like";
      zeros.SetInput("X", {missing->second});
      zeros.SetOutput("Out", {name});
      zeros.attrs["value"] = 0.0f;
      zeros.attrs["dtype"] = static_cast<int32_t>(-1);
      zeros.attrs[std::string(kOpRoleAttr)] =
          static_cast<int32_t>(kRoleBackward);
      ops_.push_back(std::move(zeros));
      ready_.insert(missing->second);
      unused.erase(missing);
    }
  }
}

absl::Status Backward::AddGradOp(OpDesc grad) {
  grad.attrs[std::string(kOpRoleAttr)] = static_cast<int32_t>(kRoleBackward);
  const size_t index = ops_.size();
  for (size_t s = 0; s < grad.outputs.size(); ++s) {
    std::vector<std::string>& names = grad.outputs[s].second;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVar ||
          !absl::EndsWith(names[i], std::string(kGradSuffix)))
        continue;
      const std::string variable =
          names[i].substr(0, names[i].size() - kGradSuffix.size());
      contributions_[variable].push_back({index, s, i});
    }
  }
  ops_.push_back(std::move(grad));
  return absl::OkStatus();
}

// Sums the contributions to a variable's gradient when there are several.
void Backward::Finish(const std::string& variable) {
  const auto it = contributions_.find(variable);
  if (it == contributions_.end()) return;
  const std::vector<Contribution> parts = std::move(it->second);
  contributions_.erase(it);
  ready_.insert(variable);
  if (parts.size() == 1) return;
  std::vector<std::string> names;
  for (const Contribution& part : parts) {
    names.push_back(
        absl::StrCat(GradName(variable), "@RENAME@block0@", names.size()));
    ops_[part.op].outputs[part.slot].second[part.at] = names.back();
  }
  OpDesc sum;
  sum.type = "sum";
  sum.SetInput("X", std::move(names));
  sum.SetOutput("Out", {GradName(variable)});
  sum.attrs[std::string(kOpRoleAttr)] = static_cast<int32_t>(kRoleBackward);
  ops_.push_back(std::move(sum));
}

absl::StatusOr<std::map<std::string, std::string>> Backward::Run() {
  PD_RETURN_IF_ERROR(CheckNames());
  FindDifferentiable();
  StartFromTargets();
  for (size_t i = block_.ops.size(); i-- > 0;)
    PD_RETURN_IF_ERROR(Visit(block_.ops[i]));
  std::map<std::string, std::string> gradients;
  std::set<std::string> leaves(options_.wrt.begin(), options_.wrt.end());
  for (const VarDesc& var : block_.vars)
    if (IsLeaf(var)) leaves.insert(var.name);
  for (const std::string& leaf : leaves) {
    Finish(leaf);
    if (ready_.count(leaf) > 0) gradients[leaf] = GradName(leaf);
  }
  BlockBuilder builder(&registry_, program_);
  for (OpDesc& op : ops_) PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
  return gradients;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> AppendBackward(
    const OpRegistry& registry, const BackwardOptions& options,
    ProgramDesc* program) {
  return Backward(registry, options, program).Run();
}

}  // namespace pd
