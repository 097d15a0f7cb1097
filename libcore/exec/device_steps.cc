// SPDX-License-Identifier: Apache-2.0
// The part of PlanBuilder that places ops on a GPU (plan_device.h says how).
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/guarded.h"
#include "libcore/exec/op_binder.h"
#include "libcore/exec/plan_builder.h"
#include "libcore/exec/plan_device.h"
#include "libcore/ops/selected_rows.h"

namespace pd {

// What implementations can be asked about: dense tensors, and selected rows
// where they know them. What the host has is row-major.
bool PlanBuilder::FitsDevice(const std::map<std::string, Tensor*>& tensors,
                             bool selected_rows) {
  for (const auto& [name, tensor] : tensors)
    if ((tensor->layout() != nullptr && !InfoOf(tensor).device) ||
        (tensor->kind() != VarKind::kLodTensor &&
         !(selected_rows && IsSelectedRows(tensor))))
      return false;
  return true;
}

absl::StatusOr<bool> PlanBuilder::BindOnDevice(
    const OpDesc& op, size_t index,
    const std::map<std::string, Tensor*>& inputs,
    const std::map<std::string, Tensor*>& outputs, StepInfo* info) {
  const auto* implementations = plan_->device_->place().kernels.Find(op.type);
  if (implementations == nullptr) return false;
  bool there = false;
  for (const auto& [name, tensor] : inputs) there = there || OnDevice(tensor);
  // Halves are offered as they are, then as float32 between casts.
  for (const bool wide : {false, true}) {
    for (const DeviceImplementation& implementation : *implementations) {
      if (implementation.follows && (wide || !there)) continue;
      if (!FitsDevice(inputs, implementation.selected_rows) ||
          !FitsDevice(outputs, implementation.selected_rows)) {
        if (!wide)
          info->refusals.push_back(
              absl::StrCat(implementation.label, ": it takes dense tensors"));
        continue;
      }
      OpBinder binder(this, op, index, inputs, outputs);
      PD_RETURN_IF_ERROR(binder.MoveTo(true));
      if (!implementation.layout_aware)
        PD_RETURN_IF_ERROR(binder.MakeRowMajor());
      if (wide) {
        PD_ASSIGN_OR_RETURN(const bool widened, binder.Widen());
        if (!widened) return false;
      }
      absl::StatusOr<Step> step = Guarded(
          [&] { return implementation.bind(&binder, plan_->device_.get()); });
      PD_RETURN_IF_ERROR(binder.sizes());
      if (step.ok()) {
        info->implementation = implementation.label;
        info->on_device = true;
        binder.Accept(*std::move(step), std::move(*info));
        return true;
      }
      if (step.status().code() != absl::StatusCode::kUnimplemented)
        return step.status();
      binder.Refuse();
      info->refusals.push_back(
          absl::StrCat(implementation.label, ": ", step.status().message()));
    }
  }
  return false;
}

absl::StatusOr<Step> PlanBuilder::CastOnDevice(const OpDesc& cast, Tensor* from,
                                               Tensor* to) {
  const auto* implementations = plan_->device_->place().kernels.Find(cast.type);
  if (implementations == nullptr) return Unimplemented("no cast on the device");
  OpBinder binder(this, cast, 0, {{"from", from}}, {{"to", to}});
  return implementations->front().bind(&binder, plan_->device_.get());
}

// Its bytes, or a copy of them, are in the device's memory; so are those of
// persistable floats, which a run brings there once, unless the host writes
// them. Kernels know no float64.
bool PlanBuilder::OnDevice(Tensor* tensor) {
  const Info& info = InfoOf(tensor);
  if (info.device || info.entry == nullptr) return info.device;
  const Sides* sides = SidesOf(tensor);
  return sides->writer != Sides::Writer::kHost &&
         (sides->twin != nullptr ||
          (IsFloating(tensor->dtype()) && tensor->dtype() != DType::kFloat64));
}

PlanBuilder::Sides* PlanBuilder::SidesOf(Tensor* persistable) {
  const auto twin = twins_.find(persistable);
  Tensor* host = twin == twins_.end() ? persistable : twin->second;
  Sides& sides = sides_[host];
  sides.host = host;
  return &sides;
}

// The copy on the device; made when it is asked for first.
absl::StatusOr<Tensor*> PlanBuilder::TwinOf(Sides* sides) {
  if (sides->twin != nullptr) return sides->twin;
  Tensor* host = sides->host;
  Scope::Entry* entry = InfoOf(host).entry;
  if (entry->device == nullptr) {
    PD_ASSIGN_OR_RETURN(entry->device,
                        DeviceValue::Create(options_.place->device, host));
  }
  Tensor* twin = NewTensor(host->dtype(), host->shape(), Kind::kPersistable);
  twin->set_lod(host->lod());
  twin->Attach(entry->device->bytes());
  Info& info = InfoOf(twin);
  info.entry = entry;
  info.device = true;
  persistable_names_[twin] = persistable_names_[host];
  twins_[twin] = host;
  plan_->device_->AddTwin(twin, entry);
  return sides->twin = twin;
}

// The tensor itself, its other side, or null: a copy is needed.
absl::StatusOr<Tensor*> PlanBuilder::ReadOn(Tensor* tensor, bool device) {
  // Where it lies is known when it runs.
  if (late_.count(tensor) > 0) return tensor;
  const Info& info = InfoOf(tensor);
  if (device && info.kind == Kind::kConstant && !info.device)
    return ConstantOnDevice(tensor);
  if (info.entry == nullptr) return info.device == device ? tensor : nullptr;
  Sides* sides = SidesOf(tensor);
  using Writer = Sides::Writer;
  if (sides->writer == (device ? Writer::kHost : Writer::kDevice))
    return nullptr;
  if (sides->writer == Writer::kNone)
    (device ? sides->device_reads : sides->host_reads) = true;
  if (!device) return sides->host;
  return TwinOf(sides);
}

// What the device refuses and the plan knows needs no step: the host has the
// value as long as the plan, and the device gets a copy where it reads it. Of
// persistable variables only shapes are believed: others may set them anew.
absl::StatusOr<bool> PlanBuilder::MakeConstants(
    const OpDesc& op, const std::map<std::string, Tensor*>& inputs,
    const std::map<std::string, Tensor*>& outputs) {
  const bool of_shape = op.type == "shape" || op.type == "size";
  for (const auto& [name, tensor] : inputs)
    if (!of_shape && InfoOf(tensor).kind != Kind::kConstant) return false;
  for (const auto& [name, tensor] : outputs)
    if (InfoOf(tensor).entry != nullptr || known_.count(tensor) == 0 ||
        known_[tensor]->dtype() != tensor->dtype() ||
        known_[tensor]->shape() != tensor->shape())
      return false;
  for (const auto& [name, tensor] : outputs) {
    PD_RETURN_IF_ERROR(tensor->Allocate());
    if (tensor->bytes() > 0)
      std::memcpy(tensor->raw(), known_[tensor]->raw(), tensor->bytes());
    InfoOf(tensor).kind = Kind::kConstant;
    InfoOf(tensor).device = false;
  }
  return !outputs.empty();
}

absl::StatusOr<Tensor*> PlanBuilder::ConstantOnDevice(Tensor* host) {
  Tensor*& twin = constants_[host];
  if (twin != nullptr) return twin;
  PD_ASSIGN_OR_RETURN(void* const bytes, plan_->device_->Keep(host->bytes()));
  Tensor* made = NewTensor(host->dtype(), host->shape(), Kind::kConstant);
  made->set_lod(host->lod());
  made->Attach(bytes);
  InfoOf(made).device = true;
  PD_RETURN_IF_ERROR(plan_->device_->Send(*host, *made));
  return twin = made;
}

absl::StatusOr<Tensor*> PlanBuilder::WriteOn(Tensor* tensor, bool device) {
  if (late_.count(tensor) > 0) return tensor;
  if (InfoOf(tensor).entry == nullptr) {
    InfoOf(tensor).device = device;
    return tensor;
  }
  Sides* sides = SidesOf(tensor);
  if (!device) return sides->host;
  return TwinOf(sides);
}

// What an op that was accepted has written.
void PlanBuilder::NoteWritten(const std::map<std::string, Tensor*>& outputs) {
  if (plan_->device_ == nullptr) return;
  for (const auto& [name, tensor] : outputs) {
    if (InfoOf(tensor).entry == nullptr) continue;
    Sides* sides = SidesOf(tensor);
    sides->writer =
        InfoOf(tensor).device ? Sides::Writer::kDevice : Sides::Writer::kHost;
    copies_.erase(sides->host);
    copies_.erase(sides->twin);
  }
}

// The newest value of a variable that an op has written.
Tensor* PlanBuilder::NewestOf(Tensor* tensor) {
  if (plan_->device_ == nullptr || InfoOf(tensor).entry == nullptr)
    return tensor;
  Sides* sides = SidesOf(tensor);
  return sides->writer == Sides::Writer::kDevice ? sides->twin : sides->host;
}

absl::StatusOr<Step> PlanBuilder::Transfer(Tensor* from, Tensor* to) {
  PlanDevice* device = plan_->device_.get();
  const bool to_device = InfoOf(to).device;
  // Their memory is no step's business.
  if (IsSelectedRows(from))
    PD_RETURN_IF_ERROR(device->RowsOf(to_device ? to : from).status());
  return Step([=](const RunContext&) {
    return to_device ? device->Send(*from, *to) : device->Bring(*from, to);
  });
}

// Link's copy, for two tensors of one place.
Step PlanBuilder::CopyBytes(Tensor* in, Tensor* out) {
  if (InfoOf(out).device)
    return [device = plan_->device_->device(), in, out](const RunContext&) {
      return device->Copy(out->raw(), in->raw(), out->bytes());
    };
  return [in, out](const RunContext&) {
    std::memcpy(out->raw(), in->raw(), out->bytes());
    return absl::OkStatus();
  };
}

absl::StatusOr<Tensor*> PlanBuilder::FetchedOnHost(const std::string& name,
                                                   Tensor* tensor) {
  if (late_.count(tensor) > 0 && InfoOf(tensor).entry == nullptr)
    return LateFetch(name, tensor);
  PD_ASSIGN_OR_RETURN(Tensor * there, ReadOn(tensor, false));
  if (there != nullptr || IsSelectedRows(tensor)) all_here_ = false;
  if (there != nullptr) return there;
  // Pinned memory has no room for row numbers.
  const bool rows = IsSelectedRows(tensor);
  Tensor* copy = CopyOf(tensor, rows ? Kind::kArena : Kind::kLate);
  PD_ASSIGN_OR_RETURN(Step step, rows ? Transfer(tensor, copy)
                                      : plan_->device_->AddFetch(tensor, copy));
  StepInfo info = MoveInfo("copy", name, *tensor, *copy);
  info.on_device = true;
  const int at = AddStep(std::move(step), std::move(info));
  Touch(tensor, at);
  Touch(copy, at);
  return copy;
}

absl::Status PlanBuilder::CompleteDevice() {
  using Writer = Sides::Writer;
  for (const auto& [host, sides] : sides_)
    if (sides.twin != nullptr)
      plan_->device_->AddUse({InfoOf(host).entry, sides.host_reads,
                              sides.device_reads, sides.writer == Writer::kHost,
                              sides.writer == Writer::kDevice});
  for (const StepInfo& info : plan_->infos_) all_here_ &= info.on_device;
  return plan_->device_->Complete(all_here_, options_.capture);
}

}  // namespace pd
