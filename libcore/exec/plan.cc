// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_device.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/plan_builder.h"
#include "libcore/exec/plan_device.h"

namespace pd {
namespace {

// A hook that calls two: the caller's, and the plan's check for NaN.
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

std::string DescribeStep(const StepInfo& info) {
  return absl::StrCat("op '", info.op_type, "' that makes '", info.output, "'");
}

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

void Plan::Attach(const Feed& feed, const void* data) {
  for (Tensor* tensor : feed.tensors) tensor->Attach(const_cast<void*>(data));
}

void Plan::SetFeed(size_t i, const void* data) {
  feeds_[i].data = data;
  Attach(feeds_[i], data);
}

const DevicePlace* Plan::place() const {
  return device_ == nullptr ? nullptr : &device_->place();
}

bool Plan::runs_ahead() const {
  return device_ != nullptr && device_->runs_ahead() && check_ == nullptr;
}

absl::StatusOr<Tensor> Plan::OnHost(const Tensor& tensor) const {
  if (late_ != nullptr) return late_->OnHost(tensor);
  if (device_ == nullptr || tensor.raw() == nullptr ||
      !device_->device()->Holds(tensor.raw()))
    return tensor;
  Tensor copy(tensor.dtype(), tensor.shape());
  copy.set_lod(tensor.lod());
  copy.set_layout(tensor.layout());
  PD_RETURN_IF_ERROR(copy.Allocate());
  PD_RETURN_IF_ERROR(device_->Bring(tensor, &copy));
  return copy;
}

const DevicePool* Plan::pool() const {
  return late_ == nullptr ? nullptr : &late_->pool();
}

// Records on which side a late step has run; one that only hands values on ran
// where these are.
void Plan::NoteLate(size_t step, const LateOp::Variables& outputs) {
  const LateDevice::Placed placed = late_->TakePlaced();
  bool here = placed.on_host == 0;
  const auto look = [&](const Tensor& tensor) {
    here = here && (tensor.raw() == nullptr || late_->Holds(tensor));
  };
  if (placed.here == 0)
    for (const auto& [name, variable] : outputs) {
      look(*variable.tensor);
      for (const Tensor& element : variable.tensor->elements()) look(element);
    }
  infos_[step].on_device = here;
}

absl::Status Plan::Run(const RunContext& context, StepHook* hook) {
  absl::Status ran = Start(context, hook);
  if (ran.ok()) ran = Wait();
  return check_ == nullptr ? ran : check_->Finish(ran);
}

absl::Status Plan::Start(const RunContext& context, StepHook* hook) {
  TwoHooks both(check_.get(), hook);
  if (hook == nullptr)
    hook = check_.get();
  else if (check_ != nullptr)
    hook = &both;
  if (blocks_ != nullptr) blocks_->set_hook(hook);
  return device_ == nullptr ? RunSteps(context, hook)
                            : RunOnDevice(context, hook);
}

absl::Status Plan::Wait() {
  return device_ == nullptr ? absl::OkStatus() : device_->Wait();
}

absl::Status Plan::RunOnDevice(const RunContext& context, StepHook* hook) {
  PD_RETURN_IF_ERROR(device_->Begin(context));
  for (size_t i = 0; i < feeds_.size(); ++i) {
    void* pinned = device_->FeedBytes(i);
    std::memcpy(pinned, feeds_[i].data, feed(i).bytes());
    Attach(feeds_[i], pinned);
  }
  PD_RETURN_IF_ERROR(device_->SendFeeds(hook == nullptr));
  const absl::Status ran =
      device_->Run(hook == nullptr, [&] { return RunSteps(context, hook); });
  device_->NoteWrites();
  PD_RETURN_IF_ERROR(ran);
  return device_->End();
}

absl::Status Plan::RunSteps(const RunContext& given, StepHook* hook) {
  RunContext context = given;
  if (context.world == nullptr) context.world = world_;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (hook != nullptr) hook->Before(i);
    absl::Status status = Guarded([&] { return steps_[i](context); });
    if (hook != nullptr && status.ok()) status = hook->After(i);
    if (!status.ok()) return Annotate(status, DescribeStep(infos_[i]));
  }
  return absl::OkStatus();
}

}  // namespace pd
