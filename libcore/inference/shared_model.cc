// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/shared_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/thread_count.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/passes/pass_dump.h"
#include "libcore/plugin/plugins.h"
#include "libcore/program/prune.h"

namespace pd {
namespace inference {
namespace {

FileBytes BytesOf(const std::shared_ptr<const std::string>& text) {
  if (text == nullptr) return {};
  return {std::shared_ptr<const std::byte>(
              text, reinterpret_cast<const std::byte*>(text->data())),
          text->size()};
}

// Before the first model: flags from the environment.
void ReadEnvironmentOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    const absl::Status status = SetFlagsFromEnvironment();
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  });
}

absl::StatusOr<LoadedModel> Read(const ModelOptions& options) {
  // Parameters go from the file into the scope, wherever they lie in it.
  constexpr Alignment kAnywhere = Alignment::kAny;
  if (options.program_bytes != nullptr)
    return LoadModelBytes(BytesOf(options.program_bytes),
                          BytesOf(options.params_bytes), kAnywhere);
  if (!options.prog_file.empty())
    return LoadModelFiles(options.prog_file, options.params_file, kAnywhere);
  if (!options.model_dir.empty())
    return LoadModelFiles(options.model_dir, "", kAnywhere);
  return InvalidArgument(
      "Either model_dir or prog_file should be set: call SetModel");
}

// With the operators that the program has, or has loaded, until now.
absl::StatusOr<std::unique_ptr<OpRegistry>> RegistryOn(
    std::shared_ptr<const DevicePlace> place) {
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry(std::move(place)));
  PD_RETURN_IF_ERROR(AddPluginOps(registry.get()));
  return registry;
}

// Which kernels a registry has depends on a flag of the process.
absl::StatusOr<std::unique_ptr<OpRegistry>> RegistryFor(
    const ModelOptions& options) {
  static std::mutex* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  const bool before = GetFlag<bool>("FLAGS_use_mkldnn");
  if (options.onednn || !before) return RegistryOn(options.place);
  PD_RETURN_IF_ERROR(SetFlag("FLAGS_use_mkldnn", "false"));
  auto registry = RegistryOn(options.place);
  PD_RETURN_IF_ERROR(SetFlag("FLAGS_use_mkldnn", "true"));
  return registry;
}

// Mixed precision for no ops but `only`.
absl::StatusOr<AmpSpec> Restricted(AmpSpec spec,
                                   const std::set<std::string>& only,
                                   const OpRegistry& registry) {
  if (only.empty()) return spec;
  PD_ASSIGN_OR_RETURN(const AmpLists lists, ListsFor(spec, registry));
  for (const std::set<std::string>* list : {&lists.white, &lists.gray})
    for (const std::string& type : *list)
      if (only.count(type) == 0) spec.custom_black_list.insert(type);
  return spec;
}

std::string InputText(const std::vector<FeedSpec>& feeds) {
  return absl::StrJoin(feeds, ", ", [](std::string* out, const FeedSpec& feed) {
    absl::StrAppend(out, "'", feed.name, "' ", Name(feed.dtype),
                    ToString(feed.shape));
  });
}

}  // namespace

absl::Status SharedModel::Annotated(const absl::Status& status) const {
  const std::string place = absl::StrCat("'", model_.path, "'");
  if (status.ok() || absl::StartsWith(status.message(), place)) return status;
  return Annotate(status, place);
}

absl::StatusOr<std::shared_ptr<SharedModel>> SharedModel::Load(
    const ModelOptions& options) {
  ReadEnvironmentOnce();
  const ThreadCount threads(options.threads);
  PD_ASSIGN_OR_RETURN(LoadedModel model, Read(options));
  return Make(std::move(model), options);
}

absl::StatusOr<std::shared_ptr<SharedModel>> SharedModel::Make(
    LoadedModel model, const ModelOptions& options) {
  const ThreadCount threads(options.threads);
  std::shared_ptr<SharedModel> shared(new SharedModel(options));
  shared->model_ = std::move(model);
  shared->options_.program_bytes = shared->options_.params_bytes = nullptr;
  PD_RETURN_IF_ERROR(shared->Annotated(shared->FillSession()));
  return shared;
}

absl::Status SharedModel::FillSession() {
  PD_ASSIGN_OR_RETURN(
      const std::vector<std::string> needed,
      FeedsNeeded(model_.program, model_.feeds, model_.fetches));
  for (const std::string& name : model_.feeds)
    needed_.push_back(std::count(needed.begin(), needed.end(), name) > 0);
  PD_ASSIGN_OR_RETURN(registry_, RegistryFor(options_));
  session_ = std::make_unique<Session>(registry_.get());
  session_->set_plan_options(InferencePlans());
  PassOptions passes;
  passes.disabled = options_.disabled_passes;
  if (!options_.dump_folder.empty()) {
    std::vector<std::string> names;
    for (const Pass& pass : AllPasses()) names.push_back(pass.name);
    passes.observer = DumpAfterPasses(options_.dump_folder, names);
  }
  session_->set_pass_options(passes);
  if (options_.amp.has_value()) {
    PD_ASSIGN_OR_RETURN(
        const AmpSpec amp,
        Restricted(*options_.amp, options_.amp_ops, *registry_));
    session_->set_mixed_precision(amp);
  }
  PD_RETURN_IF_ERROR(FillScope(model_, &session_->scope()));
  model_.params.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::string> SharedModel::Serialized() const {
  ProgramDesc program = model_.program;
  PD_RETURN_IF_ERROR(AddFeedFetch({model_.feeds, model_.fetches}, &program));
  return SerializeProgram(program);
}

absl::StatusOr<std::unique_ptr<Plan>> SharedModel::Compile(
    const std::vector<FeedSpec>& feeds) {
  const ThreadCount threads(options_.threads);
  const std::lock_guard<std::mutex> gate(gate_);
  const std::unique_lock<std::shared_mutex> alone(runs_);
  auto plan = session_->Compile(model_.program, feeds, model_.fetches);
  if (plan.ok()) return plan;
  return Annotated(absl::Status(
      plan.status().code(), absl::StrCat(plan.status().message(),
                                         " (inputs: ", InputText(feeds), ")")));
}

absl::Status SharedModel::Run(Plan* plan, StepHook* hook) {
  const ThreadCount threads(options_.threads);
  std::unique_lock<std::mutex> gate(gate_);
  const std::shared_lock<std::shared_mutex> together(runs_);
  gate.unlock();
  const absl::Status ran = plan->Run(RunContext(), hook);
  return ran.ok() ? ran : Annotated(ran);
}

void SharedModel::Forget(std::unique_ptr<Plan> plan) {
  // A plan gives up its claims on the layouts of parameters.
  const std::lock_guard<std::mutex> gate(gate_);
  plan.reset();
}

}  // namespace inference
}  // namespace pd
