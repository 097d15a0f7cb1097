// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan.h"

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/plan_builder.h"
#include "libcore/exec/plan_device.h"

namespace pd {
namespace {

// A check, then somebody else's hook.
class TwoHooks : public StepHook {
 public:
  TwoHooks(StepHook* first, StepHook* second)
      : first_(first), second_(second) {}
  void Before(size_t step) override {
    first_->Before(step);
    second_->Before(step);
  }
  absl::Status After(size_t step) override {
    const absl::Status status = second_->After(step);
    return status.ok() ? first_->After(step) : status;
  }
  void BeforeInBlock(const BlockStep& step) override {
    first_->BeforeInBlock(step);
    second_->BeforeInBlock(step);
  }
  absl::Status AfterInBlock(const BlockStep& step) override {
    const absl::Status status = second_->AfterInBlock(step);
    return status.ok() ? first_->AfterInBlock(step) : status;
  }

 private:
  StepHook *first_, *second_;
};

}  // namespace

Plan::Plan() = default;

absl::StatusOr<std::unique_ptr<Plan>> Plan::Compile(
    const OpRegistry& registry, const ProgramDesc& program,
    const std::vector<FeedSpec>& feeds, const std::vector<std::string>& fetches,
    Scope* scope, const PlanOptions& options) {
  return PlanBuilder(registry, program, scope, options).Build(feeds, fetches);
}

Plan::~Plan() {
  for (Scope::Entry* entry : pinned_) --entry->pins;
}

const Tensor* Plan::ValueOf(const Tensor* tensor) const {
  for (auto it = views_.find(tensor); it != views_.end();
       it = views_.find(tensor))
    tensor = it->second;
  return tensor;
}

void Plan::SetFeed(size_t i, const void* data) {
  for (Tensor* tensor : feeds_[i].tensors)
    tensor->Attach(const_cast<void*>(data));
}

absl::Status Plan::Run(const RunContext& context, StepHook* hook) {
  TwoHooks both(check_.get(), hook);
  if (hook == nullptr)
    hook = check_.get();
  else if (check_ != nullptr)
    hook = &both;
  if (blocks_ != nullptr) blocks_->set_hook(hook);
  if (device_ != nullptr) PD_RETURN_IF_ERROR(device_->Begin());
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (hook != nullptr) hook->Before(i);
    absl::Status status = steps_[i](context);
    if (hook != nullptr && status.ok()) status = hook->After(i);
    if (status.ok()) continue;
    if (device_ != nullptr) device_->NoteWrites();
    return Annotate(status,
                    absl::StrCat("op '", infos_[i].op_type, "' that makes '",
                                 infos_[i].output, "'"));
  }
  if (device_ == nullptr) return absl::OkStatus();
  device_->NoteWrites();
  return device_->End();
}

}  // namespace pd
