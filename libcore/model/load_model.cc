// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/load_model.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/weight_scales.h"
#include "libcore/model/checkpoint.h"
#include "libcore/model/model_files.h"
#include "libcore/model/run_checkpoint.h"
#include "libcore/ops/registry.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::Status ReadProgramOf(const std::string& path, LoadedModel* model) {
  model->path = path;
  PD_ASSIGN_OR_RETURN(model->program, ReadProgram(path));
  auto names = StripFeedFetch(&model->program);
  if (!names.ok())
    return Annotate(names.status(), absl::StrCat("'", path, "'"));
  model->feeds = std::move(names->feeds);
  model->fetches = std::move(names->fetches);
  model->classes = std::move(names->classes);
  if (!model->fetches.empty()) model->kind = LoadedModel::Kind::kInference;
  return absl::OkStatus();
}

// The program in a file, with the values that belong to it.
absl::StatusOr<LoadedModel> LoadProgram(const std::string& path,
                                        Alignment alignment) {
  LoadedModel model;
  PD_RETURN_IF_ERROR(ReadProgramOf(path, &model));
  PD_ASSIGN_OR_RETURN(FoundParams found,
                      FindParams(path, model.program, alignment));
  model.params = std::move(found.values);
  PD_RETURN_IF_ERROR(
      Annotate(ReadWeightScales(&model.program, &model.params), path));
  return model;
}

absl::StatusOr<LoadedModel> LoadRun(const RunCheckpoint& chosen) {
  PD_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadRunCheckpoint(chosen));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kRun;
  model.path = chosen.folder;
  model.run = chosen.run;
  model.program = std::move(checkpoint.program);
  model.params = std::move(checkpoint.params);
  model.params.merge(checkpoint.opt);
  return model;
}

absl::StatusOr<LoadedModel> LoadOnnx(
    const std::string& path, const NamedArrays* feeds,
    const std::map<std::string, Shape>& shapes) {
  // Shapes are inferred with it, and constants computed.
  OpRegistry registry;
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  PD_ASSIGN_OR_RETURN(InferenceModel imported,
                      ReadOnnxModel(registry, path, feeds, shapes));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kInference;
  model.path = path;
  model.program = std::move(imported.program);
  model.feeds = std::move(imported.names.feeds);
  model.fetches = std::move(imported.names.fetches);
  model.classes = std::move(imported.names.classes);
  model.params = std::move(imported.params);
  return model;
}

absl::StatusOr<LoadedModel> LoadParameters(const std::string& path) {
  PD_ASSIGN_OR_RETURN(StateDict state, ReadStateDict(path));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kParameters;
  model.path = path;
  model.params = std::move(state.tensors);
  model.parameter_names = std::move(state.parameter_names);
  return model;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(
    const std::string& model, const NamedArrays* feeds,
    const std::map<std::string, Shape>& shapes, Alignment alignment) {
  if (absl::EndsWith(model, ".onnx")) return LoadOnnx(model, feeds, shapes);
  if (absl::EndsWith(model, ".pdmodel") && Exists(model))
    return LoadProgram(model, alignment);
  if (Exists(absl::StrCat(model, ".pdmodel")))
    return LoadProgram(absl::StrCat(model, ".pdmodel"), alignment);
  PD_ASSIGN_OR_RETURN(const auto checkpoint, FindRunCheckpoint(model));
  if (checkpoint.has_value()) return LoadRun(*checkpoint);
  if (IsFolder(model)) {
    const auto program = ProgramInFolder(model);
    if (program.ok()) return LoadProgram(*program, alignment);
    return NotFound(
        "folder '%s' is no model: it has neither '__model__' nor 'latest'",
        model);
  }
  if (absl::EndsWith(model, ".pdparams") && Exists(model))
    return LoadParameters(model);
  if (Exists(model))
    return InvalidArgument(
        "'%s' is no model; expected a .pdmodel file, a prefix of one, a folder "
        "with '__model__', a run directory, RUN@best, RUN@step-N, an .onnx or "
        "a .pdparams file",
        model);
  return NotFound("model '%s' not found: neither it nor '%s.pdmodel' exists",
                  model, model);
}

namespace {

// A state_dict may hold one parameter under several names (`weight_ih_l0` and
// `0.cell.weight_ih` of paddle.nn.LSTM): leaves out those that the program does
// not have, where it has another.
void DropOtherNames(const ProgramDesc& program, LoadedModel* model) {
  std::set<std::string> taken;
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(name) != nullptr) taken.insert(of_program);
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(name) == nullptr &&
        taken.count(of_program) > 0)
      model->params.erase(name);
}

// PaddlePaddle's ImperativeQuantAware puts layers into others, which shows in
// names: "conv1._layer.weight".
void DropWrappers(const ProgramDesc& program, LoadedModel* model) {
  std::map<std::string, std::string> renamed;
  for (const auto& [name, value] : model->params) {
    const std::string plain = absl::StrReplaceAll(name, {{"._layer.", "."}});
    if (plain != name && program.global().FindVar(name) == nullptr &&
        program.global().FindVar(plain) != nullptr &&
        model->params.count(plain) == 0)
      renamed[name] = plain;
  }
  for (const auto& [name, plain] : renamed) {
    auto value = model->params.extract(name);
    value.key() = plain;
    model->params.insert(std::move(value));
  }
  for (auto& [name, of_program] : model->parameter_names) {
    const auto it = renamed.find(name);
    if (it != renamed.end()) name = it->second;
  }
}

}  // namespace

void FitNames(const ProgramDesc& program, LoadedModel* model) {
  DropWrappers(program, model);
  size_t structured = 0, of_programs = 0;
  for (const std::string& name : PersistableTensors(program))
    structured += model->params.count(name);
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(of_program) != nullptr) ++of_programs;
  if (structured >= of_programs) return DropOtherNames(program, model);
  for (const auto& [name, of_program] : model->parameter_names) {
    auto value = model->params.extract(name);
    if (value.empty()) continue;
    value.key() = of_program;
    model->params.insert(std::move(value));
  }
}

absl::Status FillScope(const LoadedModel& model, Scope* scope) {
  const ParamMatch match = MatchParams(model.program, model.params);
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(), absl::StrCat("'", model.path, "'")));
  if (!match.surplus.empty() && model.kind != LoadedModel::Kind::kRun)
    LogWarning("'%s': nothing takes the values of %s", model.path,
               match.SurplusText());
  for (const std::string& name : PersistableTensors(model.program))
    PD_RETURN_IF_ERROR(
        Annotate(scope->Set(name, model.params.at(name)), model.path));
  return absl::OkStatus();
}

}  // namespace pd
