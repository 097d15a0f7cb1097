// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/paddle_export.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/pdmodel.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// What programs without a version of their own say: PaddlePaddle 2.3.0.
constexpr int64_t kProgramVersion = 2003000;

// Several files that replace their targets together.
class FileSet {
 public:
  ~FileSet() {
    for (const std::string& target : targets_)
      std::remove(Aside(target).c_str());
  }

  // Where to write what shall become `target`.
  std::string Add(const std::string& target) {
    targets_.push_back(target);
    return Aside(target);
  }

  absl::Status Commit() {
    for (const std::string& target : targets_) {
      std::error_code error;
      if (fs::is_directory(target, error))
        return InvalidArgument("'%s' is a folder; expected a file", target);
    }
    while (!targets_.empty()) {
      const std::string& target = targets_.back();
      if (std::rename(Aside(target).c_str(), target.c_str()) != 0)
        return ErrnoToStatus(errno,
                             absl::StrCat("cannot replace '", target, "'"));
      targets_.pop_back();
    }
    return absl::OkStatus();
  }

 private:
  static std::string Aside(const std::string& target) {
    return absl::StrCat(target, ".new");
  }
  std::vector<std::string> targets_;
};

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
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
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, WithFeedFetch(model));
  PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(prefix)));
  const std::string params = absl::StrCat(prefix, ".pdiparams");
  FileSet files;
  PD_RETURN_IF_ERROR(
      WriteProgram(files.Add(absl::StrCat(prefix, ".pdmodel")), program));
  if (!model.params.empty())
    PD_RETURN_IF_ERROR(WriteTensors(files.Add(params), model.params));
  PD_RETURN_IF_ERROR(files.Commit());
  // A file of parameters beside a model without any would be taken for its own.
  if (model.params.empty()) std::remove(params.c_str());
  return SyncDirectory(FolderOf(prefix));
}

absl::Status WritePaddleLegacyModel(const InferenceModel& model,
                                    const std::string& folder) {
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, WithFeedFetch(model));
  for (const auto& [name, value] : model.params)
    PD_RETURN_IF_ERROR(CheckFileName(name));
  PD_RETURN_IF_ERROR(MakeDirectories(folder));
  FileSet files;
  PD_RETURN_IF_ERROR(
      WriteProgram(files.Add(absl::StrCat(folder, "/__model__")), program));
  for (const auto& [name, value] : model.params) {
    const std::string path = absl::StrCat(folder, "/", name);
    PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
    PD_RETURN_IF_ERROR(WriteTensor(files.Add(path), value));
  }
  PD_RETURN_IF_ERROR(files.Commit());
  // A joint file would be preferred to the parameters' own.
  std::remove(absl::StrCat(folder, "/__params__").c_str());
  return SyncDirectory(folder);
}

}  // namespace pd
