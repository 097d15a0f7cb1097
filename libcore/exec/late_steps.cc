// SPDX-License-Identifier: Apache-2.0
// The part of PlanBuilder that adds ops whose shapes a plan cannot know: ops
// that run blocks, ops on tensor arrays, ops whose result depends on data, and
// everything that reads what those make. Their steps infer and bind.
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/block_executor.h"
#include "libcore/exec/late_device.h"
#include "libcore/exec/op_binder.h"
#include "libcore/exec/plan_builder.h"
#include "libcore/exec/plan_device.h"

namespace pd {

namespace {

// An output of a late op, and its value from before the op.
struct Restore {
  Tensor* output;
  const Tensor* before;  // null: no value
  bool fixed;

  absl::Status Run(Values* values) const {
    if (before == nullptr) {
      output->elements().clear();
      output->frames().clear();
      output->Attach(nullptr);
    } else if (fixed) {
      return values->Copy(*before, output);
    } else {
      PD_ASSIGN_OR_RETURN(*output, values->Clone(*before));
    }
    return absl::OkStatus();
  }
};

// A late op, as its step runs it.
struct LateStep {
  explicit LateStep(LateOp late) : op(std::move(late)) {}

  LateOp op;
  std::deque<std::string> names;  // of its variables, and its blocks'
  LateOp::Variables inputs, outputs;
  std::vector<Restore> restore;
  std::vector<Tensor*> homes;  // outputs that are the host's at the end
  Frame* frame = nullptr;

  absl::Status Run(BlockExecutor* blocks, const RunContext& context) const {
    for (const Restore& one : restore)
      PD_RETURN_IF_ERROR(one.Run(blocks->values()));
    PD_RETURN_IF_ERROR(blocks->RunOp(op, inputs, outputs, frame, context));
    for (Tensor* home : homes) {
      PD_ASSIGN_OR_RETURN(*home, blocks->values()->OnHost(*home));
    }
    return absl::OkStatus();
  }
};

// A tensor of integers with more elements is no counter or condition of a loop.
constexpr int64_t kMostCounters = 64;

}  // namespace

bool PlanBuilder::MustBeLate(const OpDef& def, const TensorMap& inputs) const {
  if (def.shape_from_data()) return true;
  for (const auto& [name, tensor] : inputs)
    if (tensors_.IsLate(tensor)) return true;
  return false;
}

bool PlanBuilder::IsArray(const std::string& name) const {
  const auto it = vars_.find(name);
  return it != vars_.end() && it->second->kind == VarKind::kLodTensorArray;
}

Tensor* PlanBuilder::MakeLateOutput(const std::string& name) {
  if (IsPersistable(name)) {
    Scope::Entry* entry = scope_->Declare(name);
    tensors_.AddPersistable(name, entry);
    if (!entry->tensor.has_value()) tensors_.SetLate(&entry->tensor);
    return &entry->tensor;
  }
  Tensor* tensor = tensors_.New(DType::kFloat32, {}, Kind::kLate);
  // No op creates a tensor array: it is there, empty, before its first writer.
  if (IsArray(name)) tensor->set_kind(VarKind::kLodTensorArray);
  tensors_.SetLate(tensor);
  return tensor;
}

// `previous`: for outputs that the op may leave unwritten, the values from
// before it.
absl::Status PlanBuilder::ResolveLateInputs(const OpDesc& op, TensorMap* inputs,
                                            TensorMap* previous,
                                            TensorMap* outputs) {
  const bool runs_blocks = registry_.Find(op.type)->runs_blocks();
  const OuterNames names = OuterNamesOf(program_, op);
  for (const std::string& name : names.reads) {
    absl::StatusOr<Tensor*> tensor = ResolveInput(name);
    // A block may name a variable that this run of it never reads.
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

absl::Status PlanBuilder::PrepareLate() {
  if (plan_->blocks_ != nullptr) return absl::OkStatus();
  plan_->program_ = program_;
  if (plan_->device_ != nullptr) {
    plan_->late_ = std::make_unique<LateDevice>(
        &registry_, plan_->device_.get(), program_.version);
    // Memory for it must be there before a run's first step writes it.
    PD_RETURN_IF_ERROR(plan_->device_->SeedAndStep().status());
  }
  plan_->blocks_ = std::make_unique<BlockExecutor>(&registry_, &plan_->program_,
                                                   plan_->late_.get());
  return absl::OkStatus();
}

// Brings the inputs and outputs of a late op that the plan knows to one side.
// Floats, and integers beside them (ids), go to the device where it may compute
// the op; integers that loops and branches count with stay on the host. A
// persistable variable that only the host has read is updated there.
absl::Status PlanBuilder::PlaceLate(const LateOp& op, OpBinder* binder) {
  const bool blocks = op.def().runs_blocks(), hands_on = op.MovesValues({});
  const bool able = hands_on || op.def().HasImplementation(Place::kDevice);
  bool floats = false;
  for (const auto& [name, tensor] : binder->inputs())
    floats =
        floats || (!tensors_.IsLate(tensor) && IsDeviceFloat(tensor->dtype()));
  const auto outputs = binder->outputs();
  return binder->MoveEach([&](const std::string& name, Tensor* tensor) {
    if (!able || tensors_.IsLate(tensor)) return false;
    if (hands_on && !IsDeviceFloat(tensor->dtype()))
      return blocks && residency_->OnDevice(tensor) &&
             tensor->size() > kMostCounters;
    if (!IsDeviceFloat(tensor->dtype())) return floats;
    if (blocks || tensors_.InfoOf(tensor).entry == nullptr ||
        outputs.count(name) == 0)
      return true;
    return residency_->IsUpdatedOnDevice(tensor);
  });
}

// A tensor on the host for a fetch whose value is late.
Tensor* PlanBuilder::LateFetch(const std::string& name, Tensor* tensor) {
  residency_->NeedsHost();
  Tensor* here = tensors_.New(tensor->dtype(), {}, Kind::kLate);
  StepInfo info = MoveInfo("copy", name, Tensor(), Tensor());
  info.bytes_read = info.bytes_written = 0;
  info.on_device = true;
  AddStep(
      [=, late = plan_->late_.get()](const RunContext&) -> absl::Status {
        PD_ASSIGN_OR_RETURN(*here, late->OnHost(*tensor));
        return absl::OkStatus();
      },
      std::move(info));
  return here;
}

absl::Status PlanBuilder::AddLateOp(const OpDesc& op, size_t index) {
  PD_RETURN_IF_ERROR(PrepareLate());
  PD_ASSIGN_OR_RETURN(LateOp late,
                      LateOp::Make(registry_, op, program_.version));
  TensorMap inputs, previous, outputs;
  PD_RETURN_IF_ERROR(ResolveLateInputs(op, &inputs, &previous, &outputs));
  const auto step = std::make_shared<LateStep>(std::move(late));
  OpBinder binder(this, step->op.op(), index, inputs, outputs);
  PD_RETURN_IF_ERROR(binder.MakeRowMajor());
  if (plan_->device_ != nullptr)
    PD_RETURN_IF_ERROR(PlaceLate(step->op, &binder));

  const auto variable = [&](Tensor* tensor) {
    return Frame::Variable{tensor,
                           tensors_.InfoOf(tensor).kind != Kind::kLate &&
                               !tensors_.IsLate(tensor)};
  };
  plan_->frames_.emplace_back();
  step->frame = &plan_->frames_.back();
  const auto lend = [&](const std::string& name, Tensor* tensor,
                        LateOp::Variables* variables) {
    const Frame::Variable lent = variable(tensor);
    variables->Add(step->names.emplace_back(name), lent);
    step->frame->Lend(name, lent);
    return lent.fixed;
  };
  for (const auto& [name, tensor] : binder.inputs())
    lend(name, tensor, &step->inputs);
  for (const auto& [name, tensor] : binder.outputs()) {
    const bool fixed = lend(name, tensor, &step->outputs);
    const auto before = previous.find(name);
    Tensor* value =
        before == previous.end() ? nullptr : binder.inputs().at(name);
    if (value != tensor && (value != nullptr || !fixed))
      step->restore.push_back({tensor, value, fixed});
    if (!fixed && tensors_.InfoOf(tensor).entry != nullptr)
      step->homes.push_back(tensor);
  }
  StepInfo info = Describe(step->op.op());
  info.implementation = "late";
  if (!outputs.empty()) info.output = outputs.begin()->first;
  const auto at = std::make_shared<size_t>();
  binder.Accept(
      [step, at, plan = plan_.get()](const RunContext& run) {
        const absl::Status status = step->Run(plan->blocks_.get(), run);
        if (plan->late_ != nullptr) plan->NoteLate(*at, step->outputs);
        return status;
      },
      std::move(info));
  *at = plan_->steps_.size() - 1;
  for (const auto& [name, tensor] : outputs) current_[name] = NewestOf(tensor);
  return absl::OkStatus();
}

}  // namespace pd
