// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan.h"

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/exec/plan_builder.h"

namespace pd {

absl::StatusOr<std::unique_ptr<Plan>> Plan::Compile(
    const OpRegistry& registry, const ProgramDesc& program,
    const std::vector<FeedSpec>& feeds, const std::vector<std::string>& fetches,
    Scope* scope, const PlanOptions& options) {
  return PlanBuilder(registry, program, scope, options).Build(feeds, fetches);
}

Plan::~Plan() {
  for (Scope::Entry* entry : pinned_) --entry->pins;
}

void Plan::SetFeed(size_t i, const void* data) {
  for (Tensor* tensor : feeds_[i].tensors)
    tensor->Attach(const_cast<void*>(data));
}

absl::Status Plan::Run(const RunContext& context, StepHook* hook) {
  if (hook == nullptr) hook = check_.get();
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (hook != nullptr) hook->Before(i);
    absl::Status status = steps_[i](context);
    if (hook != nullptr && status.ok()) status = hook->After(i);
    if (!status.ok())
      return Annotate(status,
                      absl::StrCat("op '", infos_[i].op_type, "' that makes '",
                                   infos_[i].output, "'"));
  }
  return absl::OkStatus();
}

}  // namespace pd
