// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/session.h"

#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/status_macros.h"
#include "libcore/trace/recorder.h"

namespace pd {

absl::StatusOr<std::unique_ptr<Plan>> Session::Compile(
    const ProgramDesc& program, const std::vector<FeedSpec>& feeds,
    const std::vector<std::string>& fetches, const std::string& label) {
  RecordEvent event("compile plan");
  ProgramDesc rewritten = program;
  PassContext context;
  context.registry = registry_;
  context.keep.insert(fetches.begin(), fetches.end());
  context.label = label;
  context.value = [this](const std::string& name) -> const Tensor* {
    const Scope::Entry* entry = scope_.Find(name);
    return entry != nullptr && entry->tensor.has_value() ? &entry->tensor
                                                         : nullptr;
  };
  PD_RETURN_IF_ERROR(RunPasses(context, passes_, &rewritten));
  PlanOptions options = options_;
  options.check_nan_inf |= GetFlag<bool>("FLAGS_check_nan_inf");
  return Plan::Compile(*registry_, rewritten, feeds, fetches, &scope_, options);
}

absl::Status Session::RunOnce(const ProgramDesc& program,
                              const std::string& label) {
  return Run(program, {}, {}, label).status();
}

absl::StatusOr<NamedArrays> Session::Run(
    const ProgramDesc& program, const NamedArrays& feeds,
    const std::vector<std::string>& fetches, const std::string& label) {
  std::vector<FeedSpec> specs;
  std::vector<const Array*> fed;
  for (const auto& [name, array] : feeds) {
    const VarDesc* var = program.FindVar(0, name);
    if (var != nullptr && var->persistable) {
      PD_RETURN_IF_ERROR(scope_.Set(name, array));
      continue;
    }
    specs.push_back({name, array.dtype, array.shape, array.lod});
    fed.push_back(&array);
  }
  PD_ASSIGN_OR_RETURN(auto plan, Compile(program, specs, fetches, label));
  for (size_t i = 0; i < fed.size(); ++i) plan->SetFeed(i, fed[i]->bytes.get());
  RunContext context;
  context.seed = seed_;
  PD_RETURN_IF_ERROR(plan->Run(context));
  NamedArrays results;
  for (size_t k = 0; k < fetches.size(); ++k) {
    if (!plan->fetch(k).has_value() && plan->fetch(k).size() > 0)
      return FailedPrecondition("variable '%s' to fetch has no value",
                                fetches[k]);
    results[fetches[k]] = ToArray(plan->fetch(k));
  }
  return results;
}

}  // namespace pd
