// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/paddle_export.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/pdmodel.h"
#include "formats/pickle.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// The version of programs without one of their own: PaddlePaddle 2.3.0.
constexpr int64_t kProgramVersion = 2003000;
constexpr int kInfoProtocol = 2;  // as paddle.jit.save writes it

bool IsAbsent(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name.empty() || name == kEmptyVar;
  });
}

// Names the outputs of einsum that only its gradient reads, one for each
// operand. paddle.jit.load makes the gradients of whatever it loads and refuses
// a model that has pruned these, as paddle.jit.save's are.
void NameOutputsOfEinsum(BlockDesc* block) {
  std::vector<VarDesc> added;
  for (OpDesc& op : block->ops) {
    if (op.type != "einsum") continue;
    for (const char* slot : {"InnerCache", "XShape"}) {
      if (!IsAbsent(op.Output(slot))) continue;
      std::vector<std::string> names;
      for (const std::string& operand : op.Input("Operands")) {
        VarDesc var;
        if (const VarDesc* given = block->FindVar(operand)) var = *given;
        var.name = absl::StrCat(op.Out("Out"), ".", slot, "_", names.size());
        var.persistable = var.is_parameter = var.need_check_feed = false;
        names.push_back(var.name);
        added.push_back(std::move(var));
      }
      op.SetOutput(slot, std::move(names));
    }
  }
  for (VarDesc& var : added)
    if (block->FindVar(var.name) == nullptr)
      block->vars.push_back(std::move(var));
}

// The program as its file holds it.
absl::StatusOr<ProgramDesc> WithFeedFetch(const InferenceModel& model) {
  ProgramDesc program = model.program;
  if (program.version == 0) program.version = kProgramVersion;
  const std::vector<OpDesc>& ops = program.global().ops;
  const bool scoped = std::any_of(ops.begin(), ops.end(), [](const OpDesc& op) {
    return op.FindAttr("op_namescope") != nullptr;
  });
  PD_RETURN_IF_ERROR(AddFeedFetch(model.names, &program));
  for (BlockDesc& block : program.blocks) NameOutputsOfEinsum(&block);
  // As PaddlePaddle: who loads the model may ask for the inputs' gradients, and
  // instance_norm_grad always makes its input's.
  for (const std::string& name : model.names.feeds)
    if (VarDesc* var = program.global().FindVar(name)) {
      var->stop_gradient = false;
      var->omitted |= kOmitsStopGradient;
    }
  // VisualDL draws no program of which one op has no name scope.
  if (scoped)
    for (OpDesc& op : program.global().ops)
      op.attrs.emplace("op_namescope", std::string("/"));
  // PaddlePaddle lists variables by name; so equal models are equal files.
  for (BlockDesc& block : program.blocks)
    std::stable_sort(
        block.vars.begin(), block.vars.end(),
        [](const VarDesc& a, const VarDesc& b) { return a.name < b.name; });
  return program;
}

absl::Status CheckFileName(const std::string& name) {
  for (const absl::string_view part : absl::StrSplit(name, '/'))
    if (part.empty() || part == "." || part == "..")
      return InvalidArgument(
          "parameter '%s' cannot be a file of its folder by that name", name);
  if (name == "__model__")
    return InvalidArgument("parameter '%s' has the name of the program's file",
                           name);
  return absl::OkStatus();
}

// Variables that an op of the program writes.
std::set<std::string> Written(const ProgramDesc& program) {
  std::set<std::string> written;
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      for (const auto& slot : op.outputs)
        written.insert(slot.second.begin(), slot.second.end());
  return written;
}

// Tells paddle.jit.load which parameters are trained there: a batch norm's
// statistics are not.
void AddInfo(const InferenceModel& model, PickleDict* info) {
  const std::vector<VarDesc>& vars = model.program.global().vars;
  // Programs of save_inference_model do not say which are parameters.
  const bool marked =
      std::any_of(vars.begin(), vars.end(),
                  [](const VarDesc& v) { return v.is_parameter; });
  const std::set<std::string> written = Written(model.program);
  for (const auto& [name, value] : model.params) {
    if (info->Find(name) != nullptr) continue;
    const VarDesc* var = model.program.global().FindVar(name);
    const bool parameter =
        marked ? var != nullptr && var->is_parameter
               : IsFloating(value.dtype) && written.count(name) == 0;
    const bool trained = parameter && (var == nullptr || !var->stop_gradient);
    PickleDict entry;
    entry.Add("structured_name", {name});
    entry.Add("stop_gradient", {!trained});
    entry.Add("trainable", {trained});
    info->Add(name, {std::move(entry)});
  }
}

// A program and its parameters, to be renamed with the other files.
absl::Status AddModel(const InferenceModel& model, const std::string& prefix,
                      FileSet* files) {
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, WithFeedFetch(model));
  PD_ASSIGN_OR_RETURN(const std::string program_path,
                      files->Add(absl::StrCat(prefix, ".pdmodel")));
  PD_RETURN_IF_ERROR(WriteProgram(program_path, program));
  const std::string params = absl::StrCat(prefix, ".pdiparams");
  // A file of parameters beside a model without any would be taken for its own.
  if (model.params.empty()) return files->AddRemoval(params);
  PD_ASSIGN_OR_RETURN(const std::string params_path, files->Add(params));
  return WriteTensors(params_path, model.params);
}

absl::Status CheckMethods(const InferenceModel& model,
                          const std::vector<PaddleMethod>& methods) {
  std::set<std::string> names = {"forward"};
  for (const PaddleMethod& method : methods) {
    const std::string& name = method.name;
    const bool starts =
        !name.empty() &&
        (absl::ascii_isalpha(static_cast<unsigned char>(name[0])) ||
         name[0] == '_');
    if (!starts || !std::all_of(name.begin(), name.end(), [](char c) {
          return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
        }))
      return InvalidArgument(
          "'%s' cannot name a method: expected letters, digits and '_'", name);
    if (!names.insert(name).second)
      return InvalidArgument("two methods are named '%s'", name);
    if (model.params.empty() && !method.model.params.empty())
      return InvalidArgument(
          "method '%s' has parameters and the model itself has none: "
          "paddle.jit.load reads those of a method only beside some of the "
          "model's",
          name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WritePaddleModel(const InferenceModel& model,
                              const std::string& prefix,
                              const std::vector<PaddleMethod>& methods) {
  PD_RETURN_IF_ERROR(CheckPrefix(prefix, "a model"));
  PD_RETURN_IF_ERROR(CheckMethods(model, methods));
  PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(prefix)));
  FileSet files;
  PD_RETURN_IF_ERROR(AddModel(model, prefix, &files));
  PickleDict info;
  AddInfo(model, &info);
  for (const PaddleMethod& method : methods) {
    PD_RETURN_IF_ERROR(
        AddModel(method.model, absl::StrCat(prefix, ".", method.name), &files));
    AddInfo(method.model, &info);
  }
  const std::string info_path = absl::StrCat(prefix, ".pdiparams.info");
  if (info.items.empty()) {
    PD_RETURN_IF_ERROR(files.AddRemoval(info_path));
  } else {
    PD_ASSIGN_OR_RETURN(const std::string place, files.Add(info_path));
    PD_RETURN_IF_ERROR(WritePickle(place, {std::move(info)}, kInfoProtocol));
  }
  PD_RETURN_IF_ERROR(files.Commit());
  return SyncDirectory(FolderOf(prefix));
}

absl::Status WritePaddleLegacyModel(const InferenceModel& model,
                                    const std::string& folder) {
  PD_RETURN_IF_ERROR(CheckPrefix(folder, "a model"));
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, WithFeedFetch(model));
  for (const auto& [name, value] : model.params)
    PD_RETURN_IF_ERROR(CheckFileName(name));
  PD_RETURN_IF_ERROR(MakeDirectories(folder));
  FileSet files;
  PD_ASSIGN_OR_RETURN(const std::string program_path,
                      files.Add(absl::StrCat(folder, "/__model__")));
  PD_RETURN_IF_ERROR(WriteProgram(program_path, program));
  for (const auto& [name, value] : model.params) {
    const std::string path = absl::StrCat(folder, "/", name);
    PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
    PD_ASSIGN_OR_RETURN(const std::string value_path, files.Add(path));
    PD_RETURN_IF_ERROR(WriteTensor(value_path, value));
  }
  // A joint file would be preferred to the parameters' own.
  PD_RETURN_IF_ERROR(files.AddRemoval(absl::StrCat(folder, "/__params__")));
  PD_RETURN_IF_ERROR(files.Commit());
  return SyncDirectory(folder);
}

}  // namespace pd
