// SPDX-License-Identifier: Apache-2.0
// The part of PlanBuilder that places ops on a GPU (plan_device.h says how).
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/op_binder.h"
#include "libcore/exec/plan_builder.h"
#include "libcore/exec/plan_device.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {

// An op whose outputs are known values needs no step where the device refuses
// it: the host's tensors live as long as the plan, and the device reads copies.
// The elements of persistable variables are never known values, since another
// plan may write them.
absl::StatusOr<bool> PlanBuilder::MakeConstants(const OpDef& def,
                                                const TensorMap& inputs,
                                                const TensorMap& outputs) {
  const bool of_shape = def.Has(Trait::kReadsShapesOnly);
  for (const auto& [name, tensor] : inputs)
    if (!of_shape && tensors_.InfoOf(tensor).kind != Kind::kConstant)
      return false;
  for (const auto& [name, tensor] : outputs)
    if (tensors_.InfoOf(tensor).entry != nullptr || known_.count(tensor) == 0 ||
        known_[tensor]->dtype() != tensor->dtype() ||
        known_[tensor]->shape() != tensor->shape())
      return false;
  for (const auto& [name, tensor] : outputs) {
    PD_RETURN_IF_ERROR(tensor->Allocate());
    if (tensor->bytes() > 0)
      std::memcpy(tensor->raw(), known_[tensor]->raw(), tensor->bytes());
    tensors_.InfoOf(tensor).kind = Kind::kConstant;
    tensors_.InfoOf(tensor).device = false;
  }
  return !outputs.empty();
}

absl::StatusOr<Tensor*> PlanBuilder::FetchedOnHost(const std::string& name,
                                                   Tensor* tensor) {
  if (tensors_.IsLate(tensor) && tensors_.InfoOf(tensor).entry == nullptr)
    return LateFetch(name, tensor);
  PD_ASSIGN_OR_RETURN(Tensor * there, residency_->Read(tensor, false));
  if (there != nullptr || IsSelectedRows(tensor)) residency_->NeedsHost();
  if (there != nullptr) return there;
  // Pinned memory has no room for row numbers.
  const bool rows = IsSelectedRows(tensor);
  Tensor* copy = tensors_.CopyOf(tensor, rows ? Kind::kArena : Kind::kLate);
  PD_ASSIGN_OR_RETURN(Step step, rows ? residency_->Transfer(tensor, copy)
                                      : plan_->device_->AddFetch(tensor, copy));
  StepInfo info = MoveInfo("copy", name, *tensor, *copy);
  info.on_device = true;
  const int at = AddStep(std::move(step), std::move(info));
  tensors_.Touch(tensor, at);
  tensors_.Touch(copy, at);
  return copy;
}

absl::Status PlanBuilder::CompleteDevice() {
  residency_->AddUses();
  bool all_on_device = !residency_->needs_host();
  for (const StepInfo& info : plan_->infos_) all_on_device &= info.on_device;
  return plan_->device_->Complete(all_on_device, options_.capture);
}

}  // namespace pd
