// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<void*> PlanDevice::Keep(size_t bytes) {
  PD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, device()->Allocate(bytes));
  memory_.push_back(memory);
  return memory.get();
}

absl::StatusOr<int32_t*> PlanDevice::Complaint(std::string message) {
  if (flags_ == nullptr) {
    const size_t bytes = kMostComplaints * sizeof(int32_t);
    PD_ASSIGN_OR_RETURN(void* flags, Keep(bytes));
    PD_ASSIGN_OR_RETURN(answers_, device()->AllocatePinned(bytes));
    flags_ = static_cast<int32_t*>(flags);
  }
  if (complaints_.size() == kMostComplaints)
    return Unimplemented("more than %d checks in one program", kMostComplaints);
  complaints_.push_back(std::move(message));
  return flags_ + complaints_.size() - 1;
}

absl::StatusOr<void*> PlanDevice::AllocateArena(
    size_t bytes, const std::vector<PlannedBuffer>& buffers) {
  absl::StatusOr<void*> arena = Keep(bytes);
  if (arena.ok() || !absl::IsResourceExhausted(arena.status())) return arena;
  std::vector<PlannedBuffer> largest = buffers;
  std::sort(largest.begin(), largest.end(),
            [](const PlannedBuffer& a, const PlannedBuffer& b) {
              return a.bytes > b.bytes;
            });
  std::string names;
  for (size_t i = 0; i < largest.size() && i < 5; ++i)
    absl::StrAppend(&names, i == 0 ? "" : ", ",
                    largest[i].name.empty() ? "scratch" : largest[i].name, " ",
                    (largest[i].bytes >> 20) + 1, " MiB");
  return ResourceExhausted(
      "%s; the largest tensors of the step are %s; a smaller batch needs less, "
      "and so does train.recompute",
      std::string(arena.status().message()), names);
}

absl::Status PlanDevice::Begin() {
  for (const Use& use : uses_) {
    DeviceValue* value = use.entry->device.get();
    if (use.entry->lent) value->WrittenByHost();
    if (use.device_reads) PD_RETURN_IF_ERROR(value->ToDevice());
    if (use.host_reads) PD_RETURN_IF_ERROR(value->ToHost());
  }
  if (complaints_.empty()) return absl::OkStatus();
  return device()->Clear(flags_, complaints_.size() * sizeof(int32_t));
}

void PlanDevice::NoteWrites() {
  for (const Use& use : uses_) {
    if (use.device_writes) use.entry->device->WrittenByDevice();
    if (use.host_writes) use.entry->device->WrittenByHost();
  }
}

absl::Status PlanDevice::End() {
  for (const Use& use : uses_)
    if (use.entry->lent) PD_RETURN_IF_ERROR(use.entry->device->ToHost());
  if (!complaints_.empty())
    PD_RETURN_IF_ERROR(device()->ToHost(answers_.get(), flags_,
                                        complaints_.size() * sizeof(int32_t)));
  PD_RETURN_IF_ERROR(device()->Synchronize());
  const auto* answers = static_cast<const int32_t*>(answers_.get());
  for (size_t i = 0; i < complaints_.size(); ++i)
    if (answers[i] != 0) return InvalidArgument("%s", complaints_[i]);
  return absl::OkStatus();
}

}  // namespace pd
