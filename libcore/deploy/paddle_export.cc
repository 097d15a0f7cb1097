// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/paddle_export.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/pdmodel.h"
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

// The program as its file holds it.
absl::StatusOr<ProgramDesc> WithFeedFetch(const InferenceModel& model) {
  ProgramDesc program = model.program;
  if (program.version == 0) program.version = kProgramVersion;
  const std::vector<OpDesc>& ops = program.global().ops;
  const bool scoped = std::any_of(ops.begin(), ops.end(), [](const OpDesc& op) {
    return op.FindAttr("op_namescope") != nullptr;
  });
  PD_RETURN_IF_ERROR(AddFeedFetch(model.names, &program));
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

}  // namespace

absl::Status WritePaddleModel(const InferenceModel& model,
                              const std::string& prefix) {
  PD_RETURN_IF_ERROR(CheckPrefix(prefix, "a model"));
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, WithFeedFetch(model));
  PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(prefix)));
  FileSet files;
  PD_ASSIGN_OR_RETURN(const std::string program_path,
                      files.Add(absl::StrCat(prefix, ".pdmodel")));
  PD_RETURN_IF_ERROR(WriteProgram(program_path, program));
  const std::string params = absl::StrCat(prefix, ".pdiparams");
  if (model.params.empty()) {
    // A file of parameters beside a model without any would be taken for its
    // own.
    PD_RETURN_IF_ERROR(files.AddRemoval(params));
  } else {
    PD_ASSIGN_OR_RETURN(const std::string params_path, files.Add(params));
    PD_RETURN_IF_ERROR(WriteTensors(params_path, model.params));
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
