// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/sub_graphs.h"
#include "libcore/program/verifier.h"
#include "libcore/trace/recorder.h"

namespace pd {
namespace {

// Says which ops run on the CPU, since they may be why a GPU is slow.
void LogStepsOnHost(const Plan& plan) {
  std::map<std::string, int> counts;
  size_t on_cpu = 0;
  for (const StepInfo& step : plan.steps()) {
    if (step.on_device || step.op_type == "copy") continue;
    ++counts[step.op_type];
    ++on_cpu;
  }
  if (on_cpu == 0) return;
  std::vector<std::string> types;
  for (const auto& [type, count] : counts)
    types.push_back(count == 1 ? type : absl::StrCat(type, " x ", count));
  LogInfo("device: %d of %d steps run on the CPU, having no kernel there: %s",
          on_cpu, plan.steps().size(), absl::StrJoin(types, ", "));
}

void LogMemory(const std::string& label, const Plan& plan) {
  const PlanStats& stats = plan.stats();
  constexpr double kMib = 1 << 20;
  LogInfo(
      "memory: plan '%s' takes %.1f MiB, %.1f MiB on the device and %.1f MiB "
      "if no two tensors shared memory; parameters and states take %.1f MiB",
      label, static_cast<double>(stats.arena_bytes) / kMib,
      static_cast<double>(stats.device_bytes) / kMib,
      static_cast<double>(stats.unplanned_bytes) / kMib,
      static_cast<double>(stats.persistable_bytes) / kMib);
}

}  // namespace

absl::Status Session::MixPrecisionOf(const std::vector<std::string>& fetches,
                                     ProgramDesc* program) {
  std::vector<std::string> wide;
  for (const std::string& name : fetches) {
    const VarDesc* var = program->global().FindVar(name);
    if (var != nullptr && var->dtype == DType::kFloat32) wide.push_back(name);
  }
  PD_RETURN_IF_ERROR(MixPrecision(*registry_, *amp_, program));
  UpcastOutputs(wide, program);
  for (const ParameterCast& cast : TakeParameterCasts(program)) {
    const Scope::Entry* made = scope_.Find(cast.to);
    if (made != nullptr && made->tensor.has_value()) continue;
    PD_ASSIGN_OR_RETURN(const Array value, scope_.Get(cast.from));
    PD_RETURN_IF_ERROR(scope_.Set(cast.to, RoundedTo(cast.dtype, value)));
  }
  return absl::OkStatus();
}

absl::Status Session::ShareMemory(const std::vector<std::string>& fetches,
                                  ProgramDesc* program) {
  std::vector<FlatVariable> known = scope_.flat_variables();
  PD_RETURN_IF_ERROR(
      SeparateFlatVariables({fetches.begin(), fetches.end()}, &known, program));
  const auto stays = [program](const std::string& name) {
    const VarDesc* var = program->global().FindVar(name);
    return var != nullptr && var->persistable;
  };
  for (FlatVariable& flat : known)
    if (stays(flat.name) &&
        std::all_of(flat.parts.begin(), flat.parts.end(),
                    [&](const auto& part) { return stays(part.name); }))
      scope_.Share(std::move(flat));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Plan>> Session::Compile(
    const ProgramDesc& program, const std::vector<FeedSpec>& feeds,
    const std::vector<std::string>& fetches, const std::string& label) {
  RecordEvent event("compile plan");
  ProgramDesc rewritten = program;
  PD_RETURN_IF_ERROR(NormalizeOps(*registry_, &rewritten));
  PD_RETURN_IF_ERROR(ShareMemory(fetches, &rewritten));
  if (amp_.has_value()) PD_RETURN_IF_ERROR(MixPrecisionOf(fetches, &rewritten));
  PassContext context;
  context.registry = registry_;
  context.keep.insert(fetches.begin(), fetches.end());
  context.label = label;
  context.on_gpu = place_ != nullptr && place_->is_gpu;
  context.value = [this](const std::string& name) -> const Tensor* {
    const Scope::Entry* entry = std::as_const(scope_).Find(name);
    return entry != nullptr && entry->tensor.has_value() ? &entry->tensor
                                                         : nullptr;
  };
  PlanOptions options = options_;
  options.place = place_;
  options.check_nan_inf |= GetFlag<bool>("FLAGS_check_nan_inf");
  options.poison |= GetFlag<bool>("FLAGS_init_allocated_mem");
  // A check for NaN runs the program as it was written, with its weights.
  if (options.frozen && !options.check_nan_inf)
    context.define = [this](const std::string& of,
                            const std::function<void(float*)>& make) {
      return scope_.Remake(of, of + kFolded, make);
    };
  // The kernels of a plug-in's device are for plain ops.
  if (place_ == nullptr || place_->is_gpu)
    PD_RETURN_IF_ERROR(RunPasses(context, passes_, &rewritten));
  PD_ASSIGN_OR_RETURN(auto plan, Plan::Compile(*registry_, rewritten, feeds,
                                               fetches, &scope_, options));
  if (place_ != nullptr) LogStepsOnHost(*plan);
  if (GetFlag<bool>("FLAGS_benchmark")) LogMemory(label, *plan);
  const std::string& path = GetFlag<std::string>("FLAGS_print_sub_graph_dir");
  if (!path.empty()) PD_RETURN_IF_ERROR(AddSubGraphs(label, rewritten, path));
  return plan;
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
    // A tensor array has elements, and no bytes of its own.
    if (plan->fetch(k).raw() == nullptr && plan->fetch(k).size() > 0)
      return FailedPrecondition("variable '%s' to fetch has no value",
                                fetches[k]);
    results[fetches[k]] = ToArray(plan->fetch(k));
  }
  return results;
}

}  // namespace pd
