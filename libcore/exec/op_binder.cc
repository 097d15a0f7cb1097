// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/op_binder.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

bool Contains(const std::vector<Tensor*>& list, const Tensor* tensor) {
  return std::find(list.begin(), list.end(), tensor) != list.end();
}

// Changes the layout of a tensor that has bytes of its own.
absl::Status Rearrange(const LayoutPtr& layout, Tensor* tensor) {
  Tensor fresh(tensor->dtype(), tensor->shape());
  fresh.set_lod(tensor->lod());
  fresh.set_layout(layout);
  PD_RETURN_IF_ERROR(fresh.Allocate());
  CopyElements(*tensor, &fresh);
  *tensor = std::move(fresh);
  return absl::OkStatus();
}

bool IsHalf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16 ||
         tensor.dtype() == DType::kBFloat16;
}

}  // namespace

Tensor* OpBinder::FindInput(const std::string& name) const {
  const auto it = inputs_.find(name);
  return it == inputs_.end() ? nullptr : it->second;
}

Tensor* OpBinder::FindOutput(const std::string& name) const {
  const auto it = outputs_.find(name);
  return it == outputs_.end() ? nullptr : it->second;
}

void OpBinder::Alias(Tensor* in, Tensor* out) {
  aliases_.emplace_back(in, out);
}

void OpBinder::MayShare(Tensor* in, Tensor* out) {
  sharings_.emplace_back(in, out);
}

Tensor* OpBinder::Scratch(size_t bytes) {
  if (bytes > static_cast<size_t>(kMostBytes)) {
    sizes_.Update(OutOfRange("a step asks for %d bytes of scratch", bytes));
    bytes = 0;
  }
  Tensor* tensor = tensors().New(DType::kUInt8, {static_cast<int64_t>(bytes)},
                                 PlanTensors::Kind::kArena);
  tensors().InfoOf(tensor).device = device_;
  touched_.push_back(tensor);
  return tensor;
}

Tensor* OpBinder::Keep(const std::string& name, DType dtype, Shape shape) {
  sizes_.Update(CheckedBytes(shape, SizeOf(dtype)).status());
  Tensor* tensor =
      tensors().New(dtype, std::move(shape), PlanTensors::Kind::kArena);
  tensors().InfoOf(tensor).device = device_;
  touched_.push_back(tensor);
  keeps_.emplace_back(name, tensor);
  return tensor;
}

Tensor* OpBinder::Kept(const std::string& name) {
  const auto it = builder_->kept_.find(name);
  if (it == builder_->kept_.end() ||
      tensors().InfoOf(it->second).device != device_)
    return nullptr;
  touched_.push_back(it->second);
  return it->second;
}

absl::StatusOr<Tensor*> OpBinder::In(Tensor* tensor, const LayoutPtr& layout) {
  if (SameLayout(tensor->layout(), layout)) {
    // Another part of the step may ask for it in another layout.
    touched_.push_back(tensor);
    return tensor;
  }
  const PlanTensors::Info& info = tensors().InfoOf(tensor);
  if (StaysRearranged(info)) {
    PD_RETURN_IF_ERROR(Rearrange(layout, tensor));
    return tensor;
  }
  replaced_.push_back(tensor);
  for (Tensor* copy : tensors().Copies(tensor)) {
    if (copy->dtype() == tensor->dtype() &&
        tensors().InfoOf(copy).device == info.device &&
        SameLayout(copy->layout(), layout)) {
      touched_.push_back(copy);
      return copy;
    }
  }
  for (const Move& move : before_)
    if (move.from == tensor && !move.cast &&
        SameLayout(move.to->layout(), layout))
      return move.to;
  Tensor* copy = tensors().New(tensor->dtype(), tensor->shape(),
                               PlanTensors::Kind::kArena);
  copy->set_layout(layout);
  tensors().InfoOf(copy).device = info.device;
  PD_ASSIGN_OR_RETURN(Step step, builder_->Reorder(tensor, copy));
  before_.push_back({tensor, copy, std::move(step)});
  touched_.push_back(copy);
  return copy;
}

bool OpBinder::CanMoveToDevice() const {
  for (const auto* list : {&inputs_, &outputs_})
    for (const auto& [name, tensor] : *list)
      if (tensor->layout() != nullptr && !tensors().InfoOf(tensor).device)
        return false;
  return true;
}

absl::StatusOr<bool> OpBinder::Upcast() {
  bool any = false;
  for (const auto* list : {&inputs_, &outputs_}) {
    for (const auto& [name, tensor] : *list) {
      if (!IsHalf(*tensor)) continue;
      // The scope keeps the fp16 or bf16 variable, not its float32 copy.
      const bool stays =
          list == &outputs_ && tensors().InfoOf(tensor).entry != nullptr;
      if (tensor->kind() != VarKind::kLodTensor || stays) return false;
      any = true;
    }
  }
  if (!any) return false;
  const auto wide_of = [this](const Tensor& half) {
    Tensor* wide =
        tensors().New(DType::kFloat32, half.shape(), PlanTensors::Kind::kArena);
    wide->set_lod(half.lod());
    wide->set_layout(half.layout());
    tensors().InfoOf(wide).device = device_;
    return wide;
  };
  for (auto& [name, tensor] : inputs_) {
    if (!IsHalf(*tensor)) continue;
    Tensor* half = tensor;
    tensor = nullptr;
    for (Tensor* copy : tensors().Copies(half))
      if (copy->dtype() == DType::kFloat32 &&
          SameLayout(copy->layout(), half->layout()))
        tensor = copy;
    if (tensor != nullptr) continue;
    tensor = wide_of(*half);
    PD_ASSIGN_OR_RETURN(Step step, builder_->Cast(half, tensor));
    before_.push_back({half, tensor, std::move(step), true});
  }
  for (auto& [name, tensor] : outputs_) {
    if (!IsHalf(*tensor)) continue;
    Tensor* wide = wide_of(*tensor);
    after_.push_back({wide, tensor, nullptr, true});
    tensor = wide;
  }
  return true;
}

absl::StatusOr<Tensor*> OpBinder::Out(Tensor* tensor, const LayoutPtr& layout) {
  if (SameLayout(tensor->layout(), layout)) return tensor;
  const PlanTensors::Info& info = tensors().InfoOf(tensor);
  if (StaysRearranged(info)) {
    PD_RETURN_IF_ERROR(Rearrange(layout, tensor));
    return tensor;
  }
  if (info.entry == nullptr) {
    tensor->set_layout(layout);
    relaid_.push_back(tensor);
    return tensor;
  }
  Tensor* copy = tensors().New(tensor->dtype(), tensor->shape(),
                               PlanTensors::Kind::kArena);
  copy->set_layout(layout);
  tensors().InfoOf(copy).device = info.device;
  PD_ASSIGN_OR_RETURN(Step step, builder_->Reorder(copy, tensor));
  after_.push_back({copy, tensor, std::move(step)});
  touched_.push_back(copy);
  return copy;
}

// Whether a variable may be rearranged for good: it is persistable and no step
// relies on its layout. A device's copy must stay as the host's tensor is.
bool OpBinder::StaysRearranged(const PlanTensors::Info& info) {
  return info.entry != nullptr && info.entry->pins == 0 && !info.device;
}

LayoutPtr OpBinder::LayoutOf(const std::string& name) const {
  const auto it = builder_->current_.find(name);
  return it == builder_->current_.end() ? nullptr : it->second->layout();
}

bool OpBinder::IsConstant(const Tensor* tensor) const {
  const PlanTensors::Info& info = tensors().InfoOf(tensor);
  return info.entry != nullptr && !builder_->WrittenLater(tensor, 0);
}

bool OpBinder::IsFrozen(const Tensor* tensor) const {
  return builder_->options_.frozen && IsConstant(tensor) && tensor->has_value();
}

absl::Status OpBinder::MakeRowMajor() {
  for (auto& [name, tensor] : inputs_) {
    PD_ASSIGN_OR_RETURN(tensor, In(tensor, nullptr));
  }
  for (auto& [name, tensor] : outputs_) {
    PD_ASSIGN_OR_RETURN(tensor, Out(tensor, nullptr));
  }
  return absl::OkStatus();
}

absl::Status OpBinder::MoveTo(bool device) {
  device_ = device;
  return MoveEach([=](const std::string&, Tensor*) { return device; });
}

absl::Status OpBinder::MoveEach(
    const std::function<bool(const std::string& name, Tensor* tensor)>& to) {
  for (auto& [name, tensor] : inputs_) {
    const bool device = to(name, tensor);
    PD_ASSIGN_OR_RETURN(Tensor * there,
                        builder_->residency_->Read(tensor, device));
    if (there == tensor) continue;
    replaced_.push_back(tensor);
    const auto& copies = tensors().Copies(tensor);
    for (size_t i = 0; there == nullptr && i < copies.size(); ++i)
      if (tensors().InfoOf(copies[i]).device == device) there = copies[i];
    for (size_t i = 0; there == nullptr && i < before_.size(); ++i)
      if (before_[i].from == tensor &&
          tensors().InfoOf(before_[i].to).device == device)
        there = before_[i].to;
    if (there == nullptr) {
      there = tensors().CopyOf(tensor, PlanTensors::Kind::kArena);
      tensors().InfoOf(there).device = device;
      PD_ASSIGN_OR_RETURN(Step step,
                          builder_->residency_->Transfer(tensor, there));
      before_.push_back({tensor, there, std::move(step)});
    }
    tensor = there;
  }
  for (auto& [name, tensor] : outputs_) {
    PD_ASSIGN_OR_RETURN(tensor,
                        builder_->residency_->Write(tensor, to(name, tensor)));
  }
  return absl::OkStatus();
}

void OpBinder::Refuse() {
  for (Tensor* tensor : relaid_) tensor->set_layout(nullptr);
}

// The variables of the step, for hooks. Where a persistable output has another
// layout, the reorder that follows writes the variable, the step its source.
StepVariables OpBinder::Variables() const {
  StepVariables variables;
  variables.index = static_cast<int64_t>(op_index_);
  variables.op = op();
  variables.inputs.assign(inputs_.begin(), inputs_.end());
  for (const auto& [name, tensor] : outputs_) {
    Tensor* written = tensor;
    for (const Move& move : after_)
      if (move.to == tensor && !move.cast) written = move.from;
    variables.outputs.emplace_back(name, written);
  }
  return variables;
}

// Counts the bytes of the tensors that the step reads and writes; of late ones
// the plan knows none.
void OpBinder::CountBytes(StepInfo* info) const {
  if (info->implementation == "late") return;
  for (const auto& [name, out] : outputs_)
    info->bytes_written += static_cast<int64_t>(out->bytes());
  const OpDef* def = builder_->registry_.Find(info->op_type);
  const bool rows = def != nullptr && def->Has(Trait::kReadsSomeRows);
  for (const auto& [name, in] : inputs_) {
    if (Contains(no_buffer_, in)) continue;
    const auto bytes = static_cast<int64_t>(in->bytes());
    info->bytes_read += rows ? std::min(bytes, info->bytes_written) : bytes;
  }
}

int OpBinder::AddMove(Move* move, const std::string& output,
                      const StepInfo& op) {
  StepInfo info = MoveInfo(move->cast       ? "cast"
                           : Crosses(*move) ? "copy"
                                            : "reorder",
                           output, *move->from, *move->to);
  info.role = op.role;
  info.layer = op.layer;
  info.on_device = Crosses(*move) || tensors().InfoOf(move->to).device;
  if (move->cast && info.on_device) info.implementation = "cuda";
  // Neither can be captured: a copy to the host waits for its bytes, and a host
  // variable that is only viewed in another shape is copied anew in every run.
  const bool from_host =
      !tensors().InfoOf(move->from).device &&
      tensors().InfoOf(tensors().Root(move->from)).entry != nullptr;
  if (Crosses(*move) && (!tensors().InfoOf(move->to).device || from_host))
    builder_->residency_->NeedsHost();
  const int at = builder_->AddStep(std::move(move->step), std::move(info));
  tensors().Touch(move->from, at);
  tensors().Touch(move->to, at);
  return at;
}

bool OpBinder::Crosses(const Move& move) const {
  return tensors().InfoOf(move.from).device != tensors().InfoOf(move.to).device;
}

// Whether the move is to be a step: some are not needed.
bool OpBinder::IsWanted(const Move& move) const {
  // The step reads its shape alone: no bytes need to be copied.
  if (Crosses(move) && Contains(no_buffer_, move.to)) return false;
  if (!move.cast || !Contains(no_buffer_, move.to)) return true;
  for (const Move& other : before_)
    if (other.from == move.to) return true;
  return Contains(touched_, move.to);
}

// A cast of an output behind the step. Checks see the fp16 or bf16 value, which
// may be infinite where the float32 one was not.
void OpBinder::AddDowncast(Move* move, const StepInfo& op) {
  move->to->set_layout(move->from->layout());
  move->to->set_lod(move->from->lod());
  absl::StatusOr<Step> step = builder_->Cast(move->from, move->to);
  PD_INVARIANT(step.ok());  // the other direction was bound, or the same kind
  move->step = *std::move(step);
  std::string name;
  for (const auto& [variable, tensor] : outputs_)
    if (tensor == move->from) name = variable;
  StepVariables variables;
  variables.index = static_cast<int64_t>(op_index_);
  variables.op = this->op();
  variables.inputs.assign(inputs_.begin(), inputs_.end());
  variables.outputs = {{name, move->to}};
  builder_->SetVariables(AddMove(move, name, op), std::move(variables));
}

void OpBinder::Accept(Step step, StepInfo info) {
  CountBytes(&info);
  for (Move& move : before_) {
    if (!IsWanted(move)) continue;
    AddMove(&move, info.output, info);
    tensors().Copies(move.from).push_back(move.to);
  }
  for (const auto& [name, out] : outputs_) tensors().ForgetCopies(out);
  // A variable that a reorder or a cast behind the step writes.
  for (const Move& move : after_) tensors().ForgetCopies(move.to);
  int at = -1;
  if (step != nullptr) {
    at = builder_->AddStep(std::move(step), info);
    std::vector<Tensor*> used;
    for (Tensor* tensor : touched_)
      if (!Contains(no_buffer_, tensor)) used.push_back(tensor);
    for (const auto& [name, in] : inputs_)
      if (builder_->options_.separate ||
          (!Contains(no_buffer_, in) && !Contains(replaced_, in)))
        used.push_back(in);
    for (const auto& [name, out] : outputs_) used.push_back(out);
    builder_->SetVariables(at, Variables());
    for (Tensor* tensor : used) tensors().Touch(tensor, at);
    // One list for all: an update of every parameter has thousands of each.
    const auto touched =
        std::make_shared<const std::vector<Tensor*>>(std::move(used));
    for (const auto& [in, out] : sharings_)
      builder_->sharings_.push_back({at, in, out, touched});
  }
  for (const auto& [in, out] : aliases_) builder_->Link(in, out, op_index_);
  for (auto& [name, tensor] : keeps_) builder_->kept_[name] = tensor;
  if (builder_->residency_ != nullptr)
    builder_->residency_->NoteWritten(outputs_);
  for (Move& move : after_) {
    if (move.cast)
      AddDowncast(&move, info);
    else
      AddMove(&move, "", info);
  }
}

}  // namespace pd
