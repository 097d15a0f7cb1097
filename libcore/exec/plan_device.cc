// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {
namespace {

constexpr size_t kRunBytes = 2 * sizeof(uint64_t);  // seed, step

}  // namespace

absl::StatusOr<void*> PlanDevice::Keep(size_t bytes) {
  PD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, device()->Allocate(bytes));
  memory_.push_back(memory);
  return memory.get();
}

absl::StatusOr<const Tensor*> PlanDevice::ValueOf(const Tensor* tensor) {
  const auto it = twins_.find(tensor);
  if (it == twins_.end() || !it->second->tensor.has_value()) return nullptr;
  if (it->second->device != nullptr)
    PD_RETURN_IF_ERROR(it->second->device->ToHost());
  return &it->second->tensor;
}

// Late steps bind in every run, and ask for the same error flags each time.
absl::StatusOr<int32_t*> PlanDevice::ErrorFlag(std::string message) {
  const auto known =
      std::find(error_messages_.begin(), error_messages_.end(), message);
  if (known != error_messages_.end())
    return flags_ + (known - error_messages_.begin());
  if (flags_ == nullptr) {
    const size_t bytes = kMostErrorFlags * sizeof(int32_t);
    PD_ASSIGN_OR_RETURN(void* flags, Keep(bytes));
    for (Slot& slot : slots_) {
      PD_ASSIGN_OR_RETURN(slot.answers, device()->AllocatePinned(bytes));
    }
    PD_RETURN_IF_ERROR(device()->Clear(flags, bytes));
    flags_ = static_cast<int32_t*>(flags);
  }
  if (error_messages_.size() == kMostErrorFlags)
    return Unimplemented("more than %d checks in one program", kMostErrorFlags);
  error_messages_.push_back(std::move(message));
  return flags_ + error_messages_.size() - 1;
}

absl::StatusOr<const uint64_t*> PlanDevice::SeedAndStep() {
  if (seed_and_step_ != nullptr) return seed_and_step_;
  for (Slot& slot : slots_) {
    PD_ASSIGN_OR_RETURN(slot.numbers, device()->AllocatePinned(kRunBytes));
  }
  PD_ASSIGN_OR_RETURN(void* numbers, Keep(kRunBytes));
  return seed_and_step_ = static_cast<uint64_t*>(numbers);
}

absl::StatusOr<int64_t*> PlanDevice::RowsOf(const Tensor* selected) {
  int64_t*& rows = rows_[selected];
  if (rows == nullptr) {
    const size_t count = selected->rows().size();
    PD_ASSIGN_OR_RETURN(void* memory, Keep(count * sizeof(int64_t)));
    rows = static_cast<int64_t*>(memory);
  }
  return rows;
}

absl::Status PlanDevice::StageFeeds() {
  if (!all_here_) return absl::OkStatus();
  for (Slot& slot : slots_)
    for (Feed& feed : slot.feeds) {
      PD_ASSIGN_OR_RETURN(feed.on_device, device()->Allocate(feed.size));
    }
  return absl::OkStatus();
}

absl::Status PlanDevice::SendFeeds(bool beside) {
  Slot& slot = At(started_);
  slot.feeds_sent = all_here_ && beside;
  if (!slot.feeds_sent) return absl::OkStatus();
  for (const Feed& feed : slot.feeds)
    PD_RETURN_IF_ERROR(device()->SendBeside(feed.on_device.get(),
                                            feed.bytes.get(), feed.size));
  return device()->AwaitSent();
}

absl::Status PlanDevice::Send(const Tensor& from, const Tensor& to) {
  if (At(started_).feeds_sent)
    for (const Feed& feed : At(started_).feeds)
      if (feed.bytes.get() == from.raw())
        return device()->Copy(to.raw(), feed.on_device.get(), to.bytes());
  PD_RETURN_IF_ERROR(device()->ToDevice(to.raw(), from.raw(), to.bytes()));
  if (!IsSelectedRows(&from)) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(int64_t* const rows, RowsOf(&to));
  return device()->ToDevice(rows, from.rows().data(),
                            from.rows().size() * sizeof(int64_t));
}

absl::Status PlanDevice::Bring(const Tensor& from, Tensor* to) {
  PD_RETURN_IF_ERROR(device()->ToHost(to->raw(), from.raw(), from.bytes()));
  if (IsSelectedRows(&from)) {
    PD_ASSIGN_OR_RETURN(const int64_t* const rows, RowsOf(&from));
    to->set_kind(from.kind());
    to->set_height(from.height());
    to->rows().resize(from.rows().size());
    PD_RETURN_IF_ERROR(device()->ToHost(to->rows().data(), rows,
                                        to->rows().size() * sizeof(int64_t)));
  }
  return device()->Synchronize();
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

absl::Status PlanDevice::AddFeed(size_t bytes) {
  for (Slot& slot : slots_) {
    PD_ASSIGN_OR_RETURN(auto pinned, device()->AllocatePinned(bytes));
    slot.feeds.push_back({std::move(pinned), nullptr, bytes});
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> PlanDevice::AddFetch(const Tensor* from, Tensor* to) {
  for (Slot& slot : slots_) {
    PD_ASSIGN_OR_RETURN(auto pinned, device()->AllocatePinned(to->bytes()));
    slot.fetches.push_back(std::move(pinned));
  }
  fetches_.push_back(to);
  return Step([this, from, i = fetches_.size() - 1](const RunContext&) {
    return device()->ToHost(At(started_).fetches[i].get(), from->raw(),
                            from->bytes());
  });
}

absl::Status PlanDevice::Complete(bool all_here, bool capture) {
  all_here_ = all_here;
  same_work_ = same_work_ && all_here && capture && device()->captures();
  for (Slot& slot : slots_) {
    PD_ASSIGN_OR_RETURN(slot.end, device()->MakeMark());
  }
  return absl::OkStatus();
}

absl::Status PlanDevice::Begin(const RunContext& context) {
  PD_INVARIANT(under_way() < static_cast<int64_t>(kSlots));
  for (const Use& use : uses_) {
    DeviceValue* value = use.entry->device.get();
    if (use.entry->lent) value->WrittenByHost();
    if (use.device_reads) PD_RETURN_IF_ERROR(value->ToDevice());
    if (use.host_reads) PD_RETURN_IF_ERROR(value->ToHost());
  }
  if (seed_and_step_ != nullptr) {
    auto* numbers = static_cast<uint64_t*>(At(started_).numbers.get());
    numbers[0] = context.seed;
    numbers[1] = context.step;
    PD_RETURN_IF_ERROR(device()->ToDevice(seed_and_step_, numbers, kRunBytes));
  }
  if (error_messages_.empty()) return absl::OkStatus();
  return device()->Clear(flags_, error_messages_.size() * sizeof(int32_t));
}

// The first run of each slot is not captured: what libraries do at their first
// call must not be repeated by every later run.
absl::Status PlanDevice::Run(bool captures,
                             const std::function<absl::Status()>& steps) {
  Slot& slot = At(started_);
  if (!captures || !same_work_ || !std::exchange(slot.warm, true))
    return steps();
  if (slot.work == nullptr) {
    PD_RETURN_IF_ERROR(device()->BeginCapture());
    const absl::Status status = steps();
    auto work = device()->EndCapture();
    PD_RETURN_IF_ERROR(status);
    PD_ASSIGN_OR_RETURN(slot.work, std::move(work));
  }
  return device()->Run(*slot.work);
}

void PlanDevice::NoteWrites() {
  for (const Use& use : uses_) {
    if (use.device_writes) use.entry->device->WrittenByDevice();
    if (use.host_writes) use.entry->device->WrittenByHost();
  }
}

absl::Status PlanDevice::End() {
  Slot& slot = At(started_);
  for (const Use& use : uses_)
    if (use.entry->lent) PD_RETURN_IF_ERROR(use.entry->device->ToHost());
  if (!error_messages_.empty())
    PD_RETURN_IF_ERROR(device()->ToHost(
        slot.answers.get(), flags_, error_messages_.size() * sizeof(int32_t)));
  PD_RETURN_IF_ERROR(device()->Put(*slot.end));
  ++started_;
  return absl::OkStatus();
}

absl::Status PlanDevice::Wait() {
  PD_INVARIANT(under_way() > 0);
  const Slot& slot = At(ended_++);
  PD_RETURN_IF_ERROR(device()->WaitFor(*slot.end));
  for (size_t i = 0; i < fetches_.size(); ++i)
    fetches_[i]->Attach(slot.fetches[i].get());
  const auto* answers = static_cast<const int32_t*>(slot.answers.get());
  for (size_t i = 0; i < error_messages_.size(); ++i)
    if (answers[i] != 0) return InvalidArgument("%s", error_messages_[i]);
  return absl::OkStatus();
}

}  // namespace pd
