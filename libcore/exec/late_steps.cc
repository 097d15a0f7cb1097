// SPDX-License-Identifier: Apache-2.0
// The part of PlanBuilder that adds ops whose shapes a plan cannot know: ops
// that run blocks, ops on tensor arrays, ops whose result depends on data, and
// everything that reads what those make. Their steps infer and bind.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/block_executor.h"
#include "libcore/exec/op_binder.h"
#include "libcore/exec/plan_builder.h"

namespace pd {

namespace {

// What an output holds before its op runs.
struct Restore {
  Tensor* output;
  const Tensor* before;  // null: no value
  bool fixed;

  void Run() const {
    if (before == nullptr) {
      output->elements().clear();
      output->frames().clear();
      output->Attach(nullptr);
    } else if (fixed) {
      CopyElements(*before, output);
    } else {
      *output = CloneOf(*before);
    }
  }
};

}  // namespace

bool PlanBuilder::MustBeLate(
    const OpDef& def, const std::map<std::string, Tensor*>& inputs) const {
  if (def.shape_from_data()) return true;
  for (const auto& [name, tensor] : inputs)
    if (late_.count(tensor) > 0) return true;
  return false;
}

bool PlanBuilder::IsArray(const std::string& name) const {
  const auto it = vars_.find(name);
  return it != vars_.end() && it->second->kind == VarKind::kLodTensorArray;
}

Tensor* PlanBuilder::MakeLateOutput(const std::string& name) {
  if (IsPersistable(name)) {
    Scope::Entry* entry = scope_->Declare(name);
    TrackPersistable(name, entry);
    if (!entry->tensor.has_value()) late_.insert(&entry->tensor);
    return &entry->tensor;
  }
  Tensor* tensor = NewTensor(DType::kFloat32, {}, Kind::kLate);
  late_.insert(tensor);
  return tensor;
}

// `previous`: the values from before the op of what it may leave as it is.
absl::Status PlanBuilder::ResolveLateInputs(
    const OpDesc& op, std::map<std::string, Tensor*>* inputs,
    std::map<std::string, Tensor*>* previous,
    std::map<std::string, Tensor*>* outputs) {
  const bool runs_blocks = registry_.Find(op.type)->runs_blocks();
  const OuterNames names = OuterNamesOf(program_, op);
  for (const std::string& name : names.reads) {
    absl::StatusOr<Tensor*> tensor = ResolveInput(name);
    // A block may name what it does not come to read.
    if (tensor.ok())
      (*inputs)[name] = *tensor;
    else if (!runs_blocks)
      return tensor.status();
  }
  for (const std::string& name : names.writes) {
    if (runs_blocks || IsArray(name)) {
      absl::StatusOr<Tensor*> before = ResolveInput(name);
      if (before.ok()) (*inputs)[name] = (*previous)[name] = *before;
    }
    (*outputs)[name] = MakeLateOutput(name);
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddLateOp(const OpDesc& op, size_t index) {
  if (plan_->blocks_ == nullptr) {
    plan_->program_ = program_;
    plan_->blocks_ =
        std::make_unique<BlockExecutor>(&registry_, &plan_->program_);
  }
  PD_ASSIGN_OR_RETURN(LateOp late,
                      LateOp::Make(registry_, op, program_.version));
  std::map<std::string, Tensor*> inputs, previous, outputs;
  PD_RETURN_IF_ERROR(ResolveLateInputs(op, &inputs, &previous, &outputs));
  OpBinder binder(this, late.op(), index, inputs, outputs);
  PD_RETURN_IF_ERROR(binder.MakeRowMajor());
  if (plan_->device_ != nullptr) PD_RETURN_IF_ERROR(binder.MoveTo(false));

  const auto variable = [&](Tensor* tensor) {
    return Frame::Variable{
        tensor, InfoOf(tensor).kind != Kind::kLate && late_.count(tensor) == 0};
  };
  LateOp::Variables in, out;
  plan_->frames_.emplace_back();
  Frame* frame = &plan_->frames_.back();
  for (const auto& [name, tensor] : binder.inputs())
    frame->Lend(name, in[name] = variable(tensor));
  std::vector<Restore> restore;
  for (const auto& [name, tensor] : binder.outputs()) {
    frame->Lend(name, out[name] = variable(tensor));
    const auto before = previous.find(name);
    Tensor* value =
        before == previous.end() ? nullptr : binder.inputs().at(name);
    if (value != tensor && (value != nullptr || !out[name].fixed))
      restore.push_back({tensor, value, out[name].fixed});
  }
  StepInfo info = Describe(late.op());
  info.implementation = "late";
  if (!outputs.empty()) info.output = outputs.begin()->first;
  binder.Accept(
      [late = std::move(late), in, out, restore, frame,
       blocks = plan_->blocks_.get()](const RunContext& context) {
        for (const Restore& one : restore) one.Run();
        return blocks->RunOp(late, in, out, frame, context);
      },
      std::move(info));
  for (const auto& [name, tensor] : outputs) current_[name] = tensor;
  return absl::OkStatus();
}

}  // namespace pd
