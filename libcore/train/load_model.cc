// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/load_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/prune.h"
#include "libcore/train/checkpoint.h"

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

// Names of the persistable tensors, in name order: the order of a joint file.
std::vector<std::string> PersistableNames(const ProgramDesc& program) {
  std::vector<std::string> names;
  for (const BlockDesc& block : program.blocks)
    for (const VarDesc& var : block.vars)
      if (var.persistable && (var.kind == VarKind::kLodTensor))
        names.push_back(var.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

absl::Status ReadSeparateFiles(const std::string& folder, LoadedModel* model) {
  for (const std::string& name : PersistableNames(model->program)) {
    // A name is a file's name here: it must not lead out of the folder.
    if (absl::StrContains(name, "/") || name == "." || name == "..")
      return DataLoss("'%s': parameter '%s' is no name of a file", model->path,
                      name);
    const std::string path = absl::StrCat(folder, "/", name);
    if (!Exists(path))
      return NotFound("'%s' is missing: '%s' needs a file for its parameter",
                      path, model->path);
    PD_ASSIGN_OR_RETURN(model->params[name], ReadTensor(path));
  }
  return absl::OkStatus();
}

absl::Status ReadJointFile(const std::string& path, LoadedModel* model) {
  PD_ASSIGN_OR_RETURN(model->params,
                      ReadTensors(path, PersistableNames(model->program)));
  return absl::OkStatus();
}

absl::Status ReadProgramOf(const std::string& path, LoadedModel* model) {
  model->path = path;
  PD_ASSIGN_OR_RETURN(model->program, ReadProgram(path));
  PD_ASSIGN_OR_RETURN(FeedFetch names, StripFeedFetch(&model->program));
  model->feeds = std::move(names.feeds);
  model->fetches = std::move(names.fetches);
  if (!model->fetches.empty()) model->kind = LoadedModel::Kind::kInference;
  return absl::OkStatus();
}

absl::StatusOr<LoadedModel> LoadLegacyFolder(const std::string& folder) {
  LoadedModel model;
  PD_RETURN_IF_ERROR(ReadProgramOf(absl::StrCat(folder, "/__model__"), &model));
  const std::string joint = absl::StrCat(folder, "/__params__");
  PD_RETURN_IF_ERROR(Exists(joint) ? ReadJointFile(joint, &model)
                                   : ReadSeparateFiles(folder, &model));
  return model;
}

absl::StatusOr<LoadedModel> LoadRun(const std::string& run) {
  PD_ASSIGN_OR_RETURN(const std::string folder, NewestCheckpoint(run));
  PD_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint(folder));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kRun;
  model.path = folder;
  model.run = run;
  model.program = std::move(checkpoint.program);
  model.params = std::move(checkpoint.params);
  model.params.merge(checkpoint.opt);
  return model;
}

absl::StatusOr<LoadedModel> LoadPrefix(const std::string& prefix) {
  LoadedModel model;
  PD_RETURN_IF_ERROR(ReadProgramOf(absl::StrCat(prefix, ".pdmodel"), &model));
  const std::string streams = absl::StrCat(prefix, ".pdiparams");
  const std::string state = absl::StrCat(prefix, ".pdparams");
  if (Exists(streams)) {
    PD_RETURN_IF_ERROR(ReadJointFile(streams, &model));
  } else if (Exists(state)) {
    PD_ASSIGN_OR_RETURN(StateDict values, ReadStateDict(state));
    model.params = std::move(values.tensors);
    const std::string optimizer = absl::StrCat(prefix, ".pdopt");
    if (Exists(optimizer)) {
      PD_ASSIGN_OR_RETURN(values, ReadStateDict(optimizer));
      model.params.merge(values.tensors);
    }
  }
  return model;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& model) {
  if (absl::EndsWith(model, ".onnx"))
    return Unimplemented("'%s': reading ONNX models is not supported", model);
  if (absl::EndsWith(model, ".pdmodel") && Exists(model))
    return LoadPrefix(std::string(absl::StripSuffix(model, ".pdmodel")));
  if (Exists(absl::StrCat(model, ".pdmodel"))) return LoadPrefix(model);
  if (IsFolder(model)) {
    if (Exists(absl::StrCat(model, "/__model__")))
      return LoadLegacyFolder(model);
    if (Exists(absl::StrCat(model, "/latest")) ||
        Exists(absl::StrCat(model, "/checkpoints")))
      return LoadRun(model);
    return NotFound(
        "folder '%s' is no model: it has neither '__model__' nor 'latest'",
        model);
  }
  if (Exists(model))
    return InvalidArgument(
        "'%s' is no model; expected a .pdmodel file, a prefix of one, a folder "
        "with '__model__', or a run directory",
        model);
  return NotFound("model '%s' not found: neither it nor '%s.pdmodel' exists",
                  model, model);
}

absl::Status FillScope(const LoadedModel& model, Scope* scope) {
  std::vector<std::string> missing;
  for (const std::string& name : PersistableNames(model.program)) {
    const auto value = model.params.find(name);
    if (value == model.params.end()) {
      missing.push_back(absl::StrCat("'", name, "'"));
      continue;
    }
    const VarDesc* var = model.program.global().FindVar(name);
    const Shape& declared = var != nullptr ? var->shape : value->second.shape;
    if (declared != value->second.shape &&
        NumElements(declared) != value->second.size())
      return InvalidArgument(
          "'%s': parameter '%s' has shape %s; the program declares %s",
          model.path, name, ToString(value->second.shape), ToString(declared));
    PD_RETURN_IF_ERROR(Annotate(scope->Set(name, value->second), model.path));
  }
  if (!missing.empty())
    return InvalidArgument("'%s': no value for %s", model.path,
                           absl::StrJoin(missing, ", "));
  return absl::OkStatus();
}

}  // namespace pd
