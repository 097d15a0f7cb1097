// SPDX-License-Identifier: Apache-2.0
// Ops are visited from the last to the first. Every gradient written to a
// variable is a contribution; when the op that made the variable is reached,
// its contributions are complete and are summed. Where that op wrote over an
// earlier value, contributions to the gradient of that one begin anew.
#include "libcore/autodiff/backward.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/autodiff/block_flow.h"
#include "libcore/autodiff/grad_names.h"
#include "libcore/autodiff/kept_values.h"
#include "libcore/autodiff/restore_outputs.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/op_formula.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/outer_names.h"

namespace pd {
namespace {

// A place where a gradient op writes (part of) a variable's gradient; or one
// that is there already under the gradient's own name.
struct Contribution {
  static constexpr size_t kGiven = static_cast<size_t>(-1);
  size_t op = kGiven;  // in Backward::ops_
  size_t slot = 0;     // of its outputs
  size_t at = 0;       // in the slot
  // The op that made the variable wrote over an earlier value: gradients of
  // both have one name, so this one must not take it at once.
  bool apart = false;
};

// The gradient of one block. Those of sub-blocks become blocks of their own.
class Backward {
 public:
  /// `carried`: see KeptValues.
  Backward(const OpRegistry& registry, const BackwardOptions& options,
           const HiddenGradients& hidden, ProgramDesc* program, int32_t block,
           std::set<std::string> carried = {})
      : registry_(registry),
        options_(options),
        hidden_(hidden),
        program_(program),
        block_(block),
        kept_(program, block, std::move(carried)) {}

  absl::StatusOr<std::map<std::string, std::string>> Run();

 private:
  const BlockDesc& block() const {
    return program_->blocks[static_cast<size_t>(block_)];
  }
  OpDesc& op(size_t at) const {
    return program_->blocks[static_cast<size_t>(block_)].ops[at];
  }
  bool Differentiable(const std::string& name) const {
    return differentiable_.count(name) > 0;
  }
  bool IsArray(const std::string& name) const {
    const VarDesc* var = program_->FindVar(block_, name);
    return var != nullptr && var->kind == VarKind::kLodTensorArray;
  }
  absl::Status CheckNames() const;
  void FindDifferentiable();
  bool Propagate(int32_t block);
  bool CanHaveGradient(int32_t block, const std::string& name) const;
  bool IsLeaf(const VarDesc& var) const;
  void StartFromTargets();
  absl::Status VisitAll();
  absl::Status Visit(size_t at);
  absl::Status CheckNumbers(size_t at, std::vector<OpDesc>* grads) const;
  absl::Status VisitOp(size_t at);
  absl::Status VisitBlocks(size_t at, std::vector<std::string> given);
  void AddLoopGradients(size_t at, int32_t sub_block,
                        std::vector<std::string>* given,
                        std::vector<std::string>* gradients);
  std::vector<std::string> HandedOn(size_t at,
                                    const std::vector<std::string>& given);
  void NameInside(const std::vector<std::string>& inputs,
                  const std::vector<std::string>& given, OpDesc* grad) const;
  absl::StatusOr<int32_t> StoreBlock(int32_t forward);
  absl::Status AddGradOp(OpDesc grad);
  void Finish(const std::string& variable);
  bool FinishAtStart(const std::string& variable, bool given);
  void FillMissing(size_t at, const OpDesc& grad);
  void AddZeros(const std::string& like, const std::string& gradient);
  void AddSum(std::vector<std::string> parts, const std::string& gradient);

  const OpRegistry& registry_;
  const BackwardOptions& options_;
  const HiddenGradients& hidden_;
  ProgramDesc* program_;
  int32_t block_;
  bool in_loop_ = false;  // the block is a loop's
  absl::flat_hash_set<std::string> differentiable_;
  absl::flat_hash_map<std::string, std::vector<Contribution>> contributions_;
  absl::flat_hash_set<std::string> ready_;  // with a complete gradient
  std::vector<OpDesc> ops_;
  KeptValues kept_;
};

// A gradient of integers would be zero or nonsense.
absl::Status CheckType(const char* what, const VarDesc& var) {
  if (var.kind != VarKind::kLodTensor || IsFloating(var.dtype) ||
      IsComplex(var.dtype))
    return absl::OkStatus();
  return InvalidArgument("%s '%s' is %s; expected floating-point numbers", what,
                         var.name, Name(var.dtype));
}

// Gradient ops without a gradient of their own end a derivative of a higher
// order with an error. Other ops without one, as comparisons, just pass nothing
// on.
bool IsGradientOp(const std::string& type) {
  return absl::EndsWith(type, "_grad");
}

absl::Status Backward::CheckNames() const {
  for (const auto& [target, cotangent] : options_.targets) {
    const VarDesc* var = block().FindVar(target);
    if (var == nullptr)
      return NotFound("target '%s' of the gradient does not exist", target);
    PD_RETURN_IF_ERROR(CheckType("target", *var));
    if (!cotangent.empty() && block().FindVar(cotangent) == nullptr)
      return NotFound("cotangent '%s' does not exist", cotangent);
  }
  for (const std::string& name : options_.wrt) {
    const VarDesc* var = block().FindVar(name);
    if (var == nullptr)
      return NotFound("variable '%s' to differentiate by does not exist", name);
    PD_RETURN_IF_ERROR(CheckType("variable to differentiate by", *var));
  }
  return absl::OkStatus();
}

bool Backward::IsLeaf(const VarDesc& var) const {
  if (!options_.parameters || options_.no_grad.count(var.name) > 0)
    return false;
  return var.is_parameter && !var.stop_gradient && IsFloating(var.dtype);
}

bool Backward::CanHaveGradient(int32_t block, const std::string& name) const {
  const VarDesc* var = program_->FindVar(block, name);
  return var != nullptr && !var->stop_gradient &&
         (IsFloating(var->dtype) || IsComplex(var->dtype)) &&
         options_.no_grad.count(name) == 0;
}

// Everything that depends on a leaf through ops that have gradients.
void Backward::FindDifferentiable() {
  for (const VarDesc& var : block().vars)
    if (IsLeaf(var)) differentiable_.insert(var.name);
  differentiable_.insert(options_.wrt.begin(), options_.wrt.end());
  Propagate(0);
}

// True when a variable was added. A loop's block is gone through until none is.
bool Backward::Propagate(int32_t index) {
  const size_t before = differentiable_.size();
  const BlockDesc& block = program_->blocks[static_cast<size_t>(index)];
  for (const OpDesc& op : block.ops) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr) continue;
    if (def->runs_blocks()) {
      const Attribute* attr = op.FindAttr("sub_block");
      const auto* ref = attr == nullptr ? nullptr : std::get_if<BlockRef>(attr);
      if (ref != nullptr && ref->index > index)
        while (Propagate(ref->index)) {
        }
    }
    if (!def->has_grad() && !IsGradientOp(op.type)) continue;
    bool depends = false;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        depends = depends || differentiable_.count(name) > 0;
    if (!depends) continue;
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names)
        if (CanHaveGradient(index, name)) differentiable_.insert(name);
  }
  return differentiable_.size() > before;
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

absl::Status Backward::Visit(size_t at) {
  std::vector<std::string> outputs;
  for (const auto& [slot, names] : op(at).outputs)
    for (const std::string& name : names)
      if (contributions_.count(name) > 0) outputs.push_back(name);
  if (outputs.empty()) return absl::OkStatus();
  for (const std::string& name : outputs) Finish(name);
  bool depends = false;
  for (const auto& [slot, names] : op(at).inputs)
    for (const std::string& name : names)
      depends = depends || Differentiable(name);
  // A block that does not run leaves the value from before it.
  for (const std::string& name : outputs)
    depends = depends || (op(at).FindAttr("sub_block") != nullptr &&
                          Differentiable(name) && kept_.Overwrites(at, name));
  if (depends) {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(op(at).type));
    // The gradient of a pylayer is a block that is there already.
    PD_RETURN_IF_ERROR(def->runs_blocks() && !def->has_grad()
                           ? VisitBlocks(at, outputs)
                           : VisitOp(at));
  }
  for (const auto& [slot, names] : op(at).outputs)
    for (const std::string& name : names) {
      if (!kept_.Overwrites(at, name)) continue;
      ready_.erase(name);
      if (const auto parts = contributions_.find(name);
          parts != contributions_.end())
        for (Contribution& part : parts->second) part.apart = true;
    }
  // An op writes one element of an array; the others were written before. What
  // an op with a sub-block hands on has them already.
  for (const std::string& name : outputs)
    if (IsArray(name) && (op(at).FindAttr("sub_block") == nullptr ||
                          contributions_[name].empty()))
      contributions_[name].push_back({});
  return absl::OkStatus();
}

// Refuses gradients that are right for real numbers alone where the op has
// complex ones.
absl::Status Backward::CheckNumbers(size_t at,
                                    std::vector<OpDesc>* grads) const {
  bool real = true;
  for (const auto& [slot, names] : op(at).outputs)
    for (const std::string& name : names) {
      const VarDesc* var = program_->FindVar(block_, name);
      real = real && (var == nullptr || !IsComplex(var->dtype));
    }
  for (OpDesc& grad : *grads)
    if (grad.attrs.erase(kRealNumbersAttr) > 0 && !real)
      return Unimplemented("op '%s' has no gradient for complex numbers",
                           op(at).type);
  return absl::OkStatus();
}

absl::Status Backward::VisitOp(size_t at) {
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(op(at).type));
  if (!def->says_about_grad())
    return Unimplemented("op '%s' has no gradient", op(at).type);
  if (!def->has_grad() && IsGradientOp(op(at).type))
    return Unimplemented(
        "op '%s' has no gradient: no derivative of this order goes through it",
        op(at).type);
  if (!def->has_grad()) return absl::OkStatus();
  const auto needs_grad = [this](const std::string& name) {
    return Differentiable(name);
  };
  PD_RETURN_IF_ERROR(Annotate(def->NormalizeAttrs(&op(at)),
                              absl::StrCat("op '", op(at).type, "'")));
  PD_RETURN_IF_ERROR(
      RestoreOutputs(registry_, block_, at, needs_grad, program_));
  const OpDesc& forward = op(at);  // gradient ops are not in the block yet
  PD_ASSIGN_OR_RETURN(std::vector<OpDesc> grads,
                      def->grad()(GradRequest{forward, needs_grad}));
  PD_RETURN_IF_ERROR(CheckNumbers(at, &grads));
  for (OpDesc& grad : grads) {
    FillMissing(at, grad);
    kept_.Redirect(at, &grad);
    PD_RETURN_IF_ERROR(AddGradOp(std::move(grad)));
  }
  return absl::OkStatus();
}

// The outputs of a loop that nothing behind it asks gradients of, but a later
// run of its block does. The gradients of their last values are zero; `given`
// and their gradients' names grow by them.
void Backward::AddLoopGradients(size_t at, int32_t sub_block,
                                std::vector<std::string>* given,
                                std::vector<std::string>* gradients) {
  const std::set<std::string> behind(given->begin(), given->end());
  const std::set<std::string> needed = ReachesLoopEnd(
      registry_, *program_, sub_block,
      [this](const std::string& name) { return Differentiable(name); }, behind);
  for (const std::string& name : op(at).Output("Out")) {
    if (behind.count(name) > 0 || needed.count(name) == 0) continue;
    given->push_back(name);
    const VarDesc* var = program_->FindVar(block_, name);
    const bool tensor = var != nullptr && var->kind == VarKind::kLodTensor;
    if (tensor) AddZeros(kept_.After(at, name), GradName(name));
    // The loop itself makes an array of zeros.
    gradients->push_back(tensor ? GradName(name) : std::string(kEmptyVar));
  }
}

// The inputs of an op with a sub-block, listed or (where a condition is read in
// the block as well) not, and of its outputs `given` those that keep the value
// from before it where the block does not run.
std::vector<std::string> Backward::HandedOn(
    size_t at, const std::vector<std::string>& given) {
  const bool loop = op(at).type == "while";
  std::vector<std::string> names = op(at).Input(loop ? "X" : "Input");
  const auto add = [&names](const std::string& name) {
    if (std::count(names.begin(), names.end(), name) == 0)
      names.push_back(name);
  };
  for (const std::string& name : OuterNamesOf(*program_, op(at)).reads)
    if (Differentiable(name)) add(name);
  for (const std::string& name : given)
    if (kept_.Overwrites(at, name)) add(name);
  if (loop) op(at).SetInput("X", names);
  // Gradients need no earlier state of an array: the loop keeps none.
  for (const std::string& name : given)
    if (IsArray(name)) add(name);
  return names;
}

// The gradient of an op with a sub-block: the block's gradient as a new block,
// and an op that runs it. `given`: the outputs whose gradients are there.
absl::Status Backward::VisitBlocks(size_t at, std::vector<std::string> given) {
  const std::string type = op(at).type;
  const bool loop = type == "while";
  const Attribute* attr = op(at).FindAttr("sub_block");
  const auto* ref = attr == nullptr ? nullptr : std::get_if<BlockRef>(attr);
  if (ref == nullptr || ref->index <= block_ ||
      static_cast<size_t>(ref->index) >= program_->blocks.size() ||
      !(loop || absl::StartsWith(type, "conditional_block")) ||
      absl::EndsWith(type, "_grad"))
    return Unimplemented("op '%s' has no gradient", type);
  const int32_t sub_block = ref->index;
  std::vector<std::string> out_grads;
  for (const std::string& name : given) out_grads.push_back(GradName(name));
  if (loop) AddLoopGradients(at, sub_block, &given, &out_grads);
  const std::vector<std::string> inputs = HandedOn(at, given);
  std::set<std::string> carried;
  for (const std::string& name : inputs) {
    const VarDesc* var = program_->global().FindVar(name);
    if (loop && (var == nullptr || !var->persistable)) carried.insert(name);
  }
  Backward inner(registry_, options_, hidden_, program_, sub_block,
                 std::move(carried));
  inner.differentiable_ = differentiable_;
  inner.in_loop_ = loop;
  for (const std::string& name : given) {
    inner.contributions_[name].push_back({});
    // The gradients of elements are taken out of an array: out of the block's
    // own. A loop makes one itself.
    if (!loop && IsArray(name)) inner.AddSum({GradName(name)}, GradName(name));
  }
  PD_RETURN_IF_ERROR(inner.VisitAll());
  std::vector<std::string> in_grads;
  bool any = false;
  for (const std::string& name : inputs) {
    const bool made =
        Differentiable(name) &&
        inner.FinishAtStart(name,
                            std::count(given.begin(), given.end(), name) > 0);
    any = any || made;
    in_grads.push_back(made ? GradName(name) : std::string(kEmptyVar));
  }
  if (!any) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const int32_t stored, inner.StoreBlock(block_));
  kept_.RedirectBlock(at, stored);
  const char* scopes = loop ? "StepScopes" : "Scope";
  const std::string scope = RestoreScopes(block_, at, scopes, program_);
  OpDesc grad;
  grad.type = absl::StrCat(loop ? "while" : "conditional_block", "_grad");
  grad.attrs = op(at).attrs;
  grad.attrs["sub_block"] = BlockRef{stored};
  if (!loop) grad.SetInput("Cond", op(at).Input("Cond"));
  grad.SetInput(loop ? "X" : "Input", inputs);
  grad.SetInput("Out", op(at).Output("Out"));
  grad.SetInput("Out@GRAD", out_grads);
  grad.SetInput(scopes, {scope});
  grad.SetOutput(loop ? "X@GRAD" : "Input@GRAD", std::move(in_grads));
  NameInside(inputs, given, &grad);
  kept_.Redirect(at, &grad);
  return AddGradOp(std::move(grad));
}

// Tells a gradient op of the block the names that gradients have inside of it.
// Where "x@GRAD" is the gradient of every x, PaddlePaddle's attribute says all.
void Backward::NameInside(const std::vector<std::string>& inputs,
                          const std::vector<std::string>& given,
                          OpDesc* grad) const {
  const auto gradients = [](std::vector<std::string> names) {
    for (std::string& name : names) name = GradName(name);
    return names;
  };
  const bool loop = grad->type == "while_grad";
  if (loop) grad->attrs["original_output_grad"] = gradients(given);
  if (!hidden_.any()) return;
  grad->attrs["original_input_grad"] = gradients(inputs);
  if (loop) grad->attrs["original_output"] = given;
}

// In a sub-block: whether the gradient of a variable around it is made for the
// value from before the block. One that the block overwrites without reading
// it has the gradient zero where the gradient of its last value is given.
bool Backward::FinishAtStart(const std::string& variable, bool given) {
  const auto parts = contributions_.find(variable);
  const bool untouched = parts != contributions_.end() &&
                         parts->second.size() == 1 &&
                         parts->second[0].op == Contribution::kGiven;
  Finish(variable);
  // The gradient becomes the block's own. In a loop's block it is that already.
  if (untouched && !in_loop_) AddSum({GradName(variable)}, GradName(variable));
  if (ready_.count(variable) > 0) return true;
  if (given) AddZeros(kept_.AtStart(variable), GradName(variable));
  return given;
}

// Adds the gradient ops as a block in `parent`.
absl::StatusOr<int32_t> Backward::StoreBlock(int32_t parent) {
  kept_.Insert();
  BlockDesc stored;
  stored.idx = static_cast<int32_t>(program_->blocks.size());
  stored.parent_idx = parent;
  stored.forward_block_idx = block_;
  std::set<std::string> declared;
  for (OpDesc& op : ops_) {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(op.type));
    PD_RETURN_IF_ERROR(
        Annotate(def->Normalize(&op), absl::StrCat("op '", op.type, "'")));
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        if (name == kEmptyVar || !declared.insert(name).second) continue;
        const VarDesc* forward = program_->FindVar(
            block_, name.substr(0, name.find(std::string(kGradSuffix))));
        VarDesc var;
        if (forward != nullptr) var = *forward;
        var.name = name;
        var.persistable = var.is_parameter = false;
        stored.vars.push_back(std::move(var));
      }
    }
    stored.ops.push_back(std::move(op));
  }
  program_->blocks.push_back(std::move(stored));
  return program_->blocks.back().idx;
}

absl::Status Backward::VisitAll() {
  for (size_t i = block().ops.size(); i-- > 0;) PD_RETURN_IF_ERROR(Visit(i));
  return absl::OkStatus();
}

void Backward::AddZeros(const std::string& like, const std::string& gradient) {
  OpDesc zeros;
  zeros.type = "fill_any_like";
  zeros.SetInput("X", {like});
  zeros.SetOutput("Out", {gradient});
  zeros.attrs["value"] = 0.0f;
  zeros.attrs["dtype"] = static_cast<int32_t>(-1);
  zeros.attrs[std::string(kOpRoleAttr)] = static_cast<int32_t>(kRoleBackward);
  ops_.push_back(std::move(zeros));
}

// An output that nobody used has the gradient zero.
void Backward::FillMissing(size_t at, const OpDesc& grad) {
  std::map<std::string, std::string> unused;  // gradient -> output
  for (const auto& [slot, outputs] : op(at).outputs)
    for (const std::string& output : outputs)
      if (ready_.count(output) == 0) unused[GradName(output)] = output;
  for (const auto& [slot, names] : grad.inputs) {
    for (const std::string& name : names) {
      const auto missing = unused.find(name);
      if (missing == unused.end()) continue;
      AddZeros(kept_.After(at, missing->second), name);
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

// Sums the contributions to a variable's gradient when there are several, and
// gives it its name.
void Backward::Finish(const std::string& variable) {
  const auto it = contributions_.find(variable);
  if (it == contributions_.end()) return;
  const std::vector<Contribution> parts = std::move(it->second);
  contributions_.erase(it);
  ready_.insert(variable);
  if (parts.size() == 1 && !parts[0].apart) return;
  std::vector<std::string> names;
  for (const Contribution& part : parts) {
    if (part.op == Contribution::kGiven) {
      names.push_back(GradName(variable));
      continue;
    }
    names.push_back(absl::StrCat(GradName(variable), "@RENAME@block", block_,
                                 "@", names.size()));
    ops_[part.op].outputs[part.slot].second[part.at] = names.back();
  }
  AddSum(std::move(names), GradName(variable));
}

void Backward::AddSum(std::vector<std::string> parts,
                      const std::string& gradient) {
  OpDesc sum;
  sum.type = "sum";
  sum.SetInput("X", std::move(parts));
  sum.SetOutput("Out", {gradient});
  sum.attrs[std::string(kOpRoleAttr)] = static_cast<int32_t>(kRoleBackward);
  ops_.push_back(std::move(sum));
}

absl::StatusOr<std::map<std::string, std::string>> Backward::Run() {
  PD_RETURN_IF_ERROR(CheckNames());
  FindDifferentiable();
  StartFromTargets();
  PD_RETURN_IF_ERROR(VisitAll());
  std::map<std::string, std::string> gradients;
  std::set<std::string> leaves(options_.wrt.begin(), options_.wrt.end());
  for (const VarDesc& var : block().vars)
    if (IsLeaf(var)) leaves.insert(var.name);
  for (const std::string& leaf : leaves) {
    Finish(leaf);
    if (ready_.count(leaf) > 0) gradients[leaf] = GradName(leaf);
  }
  kept_.Insert();
  BlockBuilder builder(&registry_, program_);
  for (OpDesc& op : ops_) PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
  return gradients;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> AppendBackward(
    const OpRegistry& registry, const BackwardOptions& options,
    ProgramDesc* program) {
  const HiddenGradients hidden(program);
  if (!hidden.any())
    return Backward(registry, options, hidden, program, 0).Run();
  BackwardOptions renamed;
  for (const auto& [target, cotangent] : options.targets)
    renamed.targets[hidden.Hidden(target)] = hidden.Hidden(cotangent);
  for (const std::string& name : options.wrt)
    renamed.wrt.push_back(hidden.Hidden(name));
  for (const std::string& name : options.no_grad)
    renamed.no_grad.insert(hidden.Hidden(name));
  renamed.parameters = options.parameters;
  auto made = Backward(registry, renamed, hidden, program, 0).Run();
  hidden.Show(program);
  if (!made.ok()) return made;
  std::map<std::string, std::string> gradients;
  for (const auto& [variable, gradient] : *made)
    gradients[hidden.Shown(variable)] = hidden.Shown(gradient);
  return gradients;
}

}  // namespace pd
