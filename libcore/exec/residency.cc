// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/residency.h"

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {

bool Residency::OnDevice(Tensor* tensor) {
  const PlanTensors::Info& info = tensors_->InfoOf(tensor);
  if (info.device || info.entry == nullptr) return info.device;
  const Sides* sides = SidesOf(tensor);
  return sides->writer != Writer::kHost &&
         (sides->on_device != nullptr ||
          (IsFloating(tensor->dtype()) && tensor->dtype() != DType::kFloat64));
}

Residency::Sides* Residency::SidesOf(Tensor* persistable) {
  const auto it = hosts_.find(persistable);
  Tensor* host = it == hosts_.end() ? persistable : it->second;
  Sides& sides = sides_[host];
  sides.host = host;
  return &sides;
}

// The device's copy of a persistable variable, made at the first call.
absl::StatusOr<Tensor*> Residency::DeviceSide(Sides* sides) {
  if (sides->on_device != nullptr) return sides->on_device;
  Tensor* host = sides->host;
  Scope::Entry* entry = tensors_->InfoOf(host).entry;
  if (entry->device == nullptr) {
    PD_ASSIGN_OR_RETURN(entry->device,
                        DeviceValue::Create(device_->place().device, host));
  }
  Tensor* made = tensors_->New(host->dtype(), host->shape(),
                               PlanTensors::Kind::kPersistable);
  made->set_lod(host->lod());
  made->Attach(entry->device->bytes());
  PlanTensors::Info& info = tensors_->InfoOf(made);
  info.entry = entry;
  info.device = true;
  tensors_->ShareName(host, made);
  hosts_[made] = host;
  device_->AddTwin(made, entry);
  return sides->on_device = made;
}

absl::StatusOr<Tensor*> Residency::ConstantOnDevice(Tensor* host) {
  const auto known = constants_.find(host);
  if (known != constants_.end()) return known->second;
  PD_ASSIGN_OR_RETURN(void* const bytes, device_->Keep(host->bytes()));
  Tensor* made =
      tensors_->New(host->dtype(), host->shape(), PlanTensors::Kind::kConstant);
  made->set_lod(host->lod());
  made->Attach(bytes);
  tensors_->InfoOf(made).device = true;
  PD_RETURN_IF_ERROR(device_->Send(*host, *made));
  return constants_[host] = made;
}

absl::StatusOr<Tensor*> Residency::Read(Tensor* tensor, bool device) {
  // The side of a late value is known when it runs.
  if (tensors_->IsLate(tensor)) return tensor;
  const PlanTensors::Info& info = tensors_->InfoOf(tensor);
  if (device && info.kind == PlanTensors::Kind::kConstant && !info.device)
    return ConstantOnDevice(tensor);
  if (info.entry == nullptr) return info.device == device ? tensor : nullptr;
  Sides* sides = SidesOf(tensor);
  if (sides->writer == (device ? Writer::kHost : Writer::kDevice))
    return nullptr;
  if (sides->writer == Writer::kNone)
    (device ? sides->device_reads : sides->host_reads) = true;
  if (!device) return sides->host;
  return DeviceSide(sides);
}

absl::StatusOr<Tensor*> Residency::Write(Tensor* tensor, bool device) {
  if (tensors_->IsLate(tensor)) return tensor;
  if (tensors_->InfoOf(tensor).entry == nullptr) {
    tensors_->InfoOf(tensor).device = device;
    return tensor;
  }
  Sides* sides = SidesOf(tensor);
  if (!device) return sides->host;
  return DeviceSide(sides);
}

void Residency::NoteWritten(const TensorMap& outputs) {
  for (const auto& [name, tensor] : outputs) {
    const PlanTensors::Info& info = tensors_->InfoOf(tensor);
    if (info.entry == nullptr) continue;
    Sides* sides = SidesOf(tensor);
    sides->writer = info.device ? Writer::kDevice : Writer::kHost;
    tensors_->ForgetCopies(sides->host);
    tensors_->ForgetCopies(sides->on_device);
  }
}

Tensor* Residency::Newest(Tensor* tensor) {
  if (tensors_->InfoOf(tensor).entry == nullptr) return tensor;
  const Sides* sides = SidesOf(tensor);
  return sides->writer == Writer::kDevice ? sides->on_device : sides->host;
}

bool Residency::IsUpdatedOnDevice(Tensor* persistable) {
  const Sides& sides = *SidesOf(persistable);
  const bool by_host = sides.host_reads || sides.writer == Writer::kHost;
  return !by_host || sides.device_reads || sides.writer == Writer::kDevice;
}

absl::StatusOr<Step> Residency::Transfer(Tensor* from, Tensor* to) {
  const bool to_device = tensors_->InfoOf(to).device;
  // Memory for row numbers is allocated while the plan is made.
  if (IsSelectedRows(from))
    PD_RETURN_IF_ERROR(device_->RowsOf(to_device ? to : from).status());
  return Step([device = device_, to_device, from, to](const RunContext&) {
    return to_device ? device->Send(*from, *to) : device->Bring(*from, to);
  });
}

Step Residency::CopyOnDevice(Tensor* in, Tensor* out) {
  return [device = device_->device(), in, out](const RunContext&) {
    return device->Copy(out->raw(), in->raw(), out->bytes());
  };
}

void Residency::AddUses() {
  for (const auto& [host, sides] : sides_)
    if (sides.on_device != nullptr)
      device_->AddUse({tensors_->InfoOf(host).entry, sides.host_reads,
                       sides.device_reads, sides.writer == Writer::kHost,
                       sides.writer == Writer::kDevice});
}

}  // namespace pd
