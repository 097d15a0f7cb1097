// SPDX-License-Identifier: Apache-2.0
// Programs with their parameters: every persistable tensor of the program gets
// its value, or the error says which do not.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write_internal.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/paddle_export.h"
#include "libcore/model/model_files.h"
#include "libcore/model/tree.h"
#include "libcore/ops/registry.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// The arrays under the names of the program's variables: their own, or those
// that the table of a dygraph state dict gives them.
absl::StatusOr<NamedArrays> ValuesFor(const WriteJob& job,
                                      const ProgramDesc& program) {
  WriteJob named = job;
  Content renamed = job.content;
  renamed.object = job.object;
  PD_ASSIGN_OR_RETURN(NamedArrays values, ArraysOf(job, "a model", true));
  ParamMatch match = MatchParams(program, values);
  if (!match.missing.empty() && RenameTensors(true, &renamed).ok()) {
    named.object = std::move(renamed.object);
    PD_ASSIGN_OR_RETURN(values, ArraysOf(named, "a model", true));
    match = MatchParams(program, values);
  }
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(), absl::StrCat("'", job.content.path, "'")));
  std::vector<std::string> surplus;
  for (const std::string& name : match.surplus) {
    surplus.push_back(absl::StrCat("'", name, "'"));
    values.erase(name);
  }
  PD_RETURN_IF_ERROR(LeaveOut(job, "the program", surplus));
  return values;
}

// Where the job's set has `path` written.
absl::StatusOr<std::string> Member(const WriteJob& job,
                                   const std::string& path) {
  job.written->files.push_back(path);
  return job.files->Add(path);
}

// static.save's two state dicts: parameters, and whatever else persists.
absl::Status WriteStates(const WriteJob& job, const std::string& prefix,
                         const ProgramDesc& program,
                         const NamedArrays& values) {
  StateDict params, opt;
  for (const BlockDesc& block : program.blocks) {
    for (const VarDesc& var : block.vars) {
      const auto value = values.find(var.name);
      if (value == values.end() || !var.persistable) continue;
      StateDict& state = var.is_parameter ? params : opt;
      if (state.tensors.emplace(var.name, value->second).second)
        state.order.push_back(var.name);
    }
  }
  const int protocol = job.options.protocol;
  PD_ASSIGN_OR_RETURN(const std::string params_path,
                      Member(job, prefix + ".pdparams"));
  PD_RETURN_IF_ERROR(WriteStateDict(params_path, params, protocol));
  if (opt.tensors.empty()) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const std::string opt_path,
                      Member(job, prefix + ".pdopt"));
  return WriteStateDict(opt_path, opt, protocol);
}

// The program with its parameters marked as such, which save_inference_model
// leaves out and static.load goes by: where no variable is marked, all that
// persist but for those that belong to an optimizer or a schedule, which write
// them, but not as a parameter.
ProgramDesc WithParametersMarked(const ProgramDesc& program) {
  ProgramDesc marked = program;
  std::set<std::string> state;
  for (const BlockDesc& block : program.blocks) {
    for (const VarDesc& var : block.vars)
      if (var.is_parameter) return marked;
    for (const OpDesc& op : block.ops) {
      const auto role = op.AttrOr<int32_t>(kOpRoleAttr, kRoleForward);
      if ((role & (kRoleOptimize | kRoleLRSched)) == 0) continue;
      for (const auto& [slot, names] : op.outputs)
        if (slot != "ParamOut") state.insert(names.begin(), names.end());
    }
  }
  for (BlockDesc& block : marked.blocks)
    for (VarDesc& var : block.vars)
      var.is_parameter = var.persistable && var.kind == VarKind::kLodTensor &&
                         state.count(var.name) == 0;
  return marked;
}

// The program of an inference model as save_inference_model writes it: without
// marks.
ProgramDesc WithoutMarks(ProgramDesc program) {
  for (BlockDesc& block : program.blocks)
    for (VarDesc& var : block.vars) var.is_parameter = false;
  return program;
}

bool IsInferenceModel(const ProgramDesc& program) {
  const std::vector<OpDesc>& ops = program.global().ops;
  return std::any_of(ops.begin(), ops.end(),
                     [](const OpDesc& op) { return op.type == "fetch"; });
}

// The program as the target's form has it: static.save's with its parameters
// marked, save_inference_model's without marks.
ProgramDesc ProgramFor(const WriteJob& job, Target target,
                       const ProgramDesc& program) {
  if (target == Target::kPaddleStatic) return WithParametersMarked(program);
  if (job.content.state_files && IsInferenceModel(program))
    return WithoutMarks(program);
  return program;
}

absl::Status WriteJointBeside(const WriteJob& job, const std::string& path,
                              const NamedArrays& values) {
  if (values.empty()) return absl::OkStatus();  // as PaddlePaddle: no file
  PD_ASSIGN_OR_RETURN(const std::string params_path, Member(job, path));
  PD_RETURN_IF_ERROR(WriteTensors(params_path, values));
  if (job.content.info.As<PickleNone>() != nullptr ||
      !absl::EndsWith(path, ".pdiparams"))
    return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const std::string info_path, Member(job, path + ".info"));
  return WritePickle(info_path, job.content.info, 2);
}

// A model of ONNX or Caffe becomes a program of PaddlePaddle's ops.
absl::Status WriteOnnxAs(const WriteJob& job, Target target) {
  if (target != Target::kPaddle && target != Target::kLegacy)
    return InvalidArgument(
        "'%s': a model of another framework is written as .pdmodel with "
        ".pdiparams, or as a "
        "folder with '__model__' and a file for each parameter",
        job.content.path);
  OpRegistry registry;
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  PD_ASSIGN_OR_RETURN(
      const InferenceModel model,
      OfFile(job.content.path,
             ImportOnnx(registry, *job.content.onnx, /*feeds=*/nullptr)));
  Count(model.params, job.written);
  if (target == Target::kLegacy) {
    job.written->files = {absl::StrCat(job.path, "/__model__")};
    for (const auto& [name, value] : model.params)
      job.written->files.push_back(absl::StrCat(job.path, "/", name));
    return WritePaddleLegacyModel(model, job.path);
  }
  const std::string prefix(absl::StripSuffix(job.path, ".pdmodel"));
  job.written->files = {prefix + ".pdiparams", prefix + ".pdmodel"};
  return WritePaddleModel(model, prefix);
}

}  // namespace

absl::Status WriteTensorFolder(const WriteJob& job, const std::string& folder,
                               const NamedArrays& arrays) {
  for (const auto& [name, array] : arrays)
    if (!StaysInside(name))
      return InvalidArgument("tensor '%s': that is no name of a file", name);
  Count(arrays, job.written);
  for (const auto& [name, array] : arrays) {
    const std::string path = absl::StrCat(folder, "/", name);
    PD_RETURN_IF_ERROR(MakeDirectories(fs::path(path).parent_path().string()));
    PD_ASSIGN_OR_RETURN(const std::string tensor_path, Member(job, path));
    PD_RETURN_IF_ERROR(WriteTensor(tensor_path, array));
  }
  return absl::OkStatus();
}

absl::Status WriteModel(const WriteJob& job, Target target) {
  const ProgramDesc* program =
      job.content.program.has_value()   ? &*job.content.program
      : job.options.program.has_value() ? &*job.options.program
                                        : nullptr;
  if (program == nullptr && job.content.onnx.has_value())
    return WriteOnnxAs(job, target);
  if (program == nullptr && job.content.script.has_value())
    return InvalidArgument(
        "'%s': the graph of a TorchScript archive hangs on the shapes of its "
        "inputs; 'pd-export -m %s --input NAME=SHAPE' writes the model",
        job.content.path, job.content.path);
  if (program == nullptr)
    return InvalidArgument(
        "'%s' holds no program, which a model needs: --program names one",
        job.content.path);
  const bool folder =
      target == Target::kLegacy || target == Target::kLegacyJoint;
  const std::string prefix(
      absl::StripSuffix(absl::StripSuffix(job.path, folder ? "/" : ".pdmodel"),
                        folder ? "/__model__" : ""));
  const std::string model =
      absl::StrCat(prefix, folder ? "/__model__" : ".pdmodel");
  if (target == Target::kProgram) {
    const std::string path = IsDirectTarget(job.path) ? job.path : model;
    job.written->files.push_back(path);
    return WriteProgram(path, *program);
  }
  NamedArrays values;
  if (!PersistableTensors(*program).empty() ||
      job.object.As<PickleNone>() == nullptr) {
    PD_ASSIGN_OR_RETURN(values, ValuesFor(job, *program));
  }
  if (folder) PD_RETURN_IF_ERROR(MakeDirectories(prefix));
  // First in the set, so last in its place: whoever finds the program finds
  // its parameters.
  PD_ASSIGN_OR_RETURN(const std::string program_path, job.files->Add(model));
  const ProgramDesc written = ProgramFor(job, target, *program);
  PD_RETURN_IF_ERROR(WriteProgram(program_path, written));
  if (target == Target::kLegacy)
    PD_RETURN_IF_ERROR(WriteTensorFolder(job, prefix, values));
  else
    Count(values, job.written);
  if (target == Target::kLegacyJoint)
    PD_RETURN_IF_ERROR(WriteJointBeside(job, prefix + "/__params__", values));
  if (target == Target::kPaddle)
    PD_RETURN_IF_ERROR(WriteJointBeside(job, prefix + ".pdiparams", values));
  if (target == Target::kPaddleStatic)
    PD_RETURN_IF_ERROR(WriteStates(job, prefix, written, values));
  job.written->files.push_back(model);
  return absl::OkStatus();
}

}  // namespace pd
