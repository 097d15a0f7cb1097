// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/model_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "formats/detect.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// Files of a folder in name order.
std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (IsFile(it->path().string()))
      names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status ReadJoint(const std::string& path, const ProgramDesc& program,
                       Alignment alignment, FoundParams* out) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  PD_ASSIGN_OR_RETURN(
      out->values,
      OfFile(path, ParseTensors(file, PersistableTensors(program), alignment)));
  out->form = FoundParams::Form::kJoint;
  out->path = path;
  const std::string info = absl::StrCat(path, ".info");
  if (!Exists(info)) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(info));
  PD_ASSIGN_OR_RETURN(out->info, OfFile(info, ParsePickle(bytes)));
  return absl::OkStatus();
}

absl::Status ReadSeparate(const std::string& folder, const ProgramDesc& program,
                          Alignment alignment, FoundParams* out) {
  out->path = folder;
  for (const std::string& name : PersistableTensors(program)) {
    if (!StaysInside(name))
      return DataLoss("'%s': variable '%s' is no name of a file", folder, name);
    const std::string path = absl::StrCat(folder, "/", name);
    if (!Exists(path)) continue;
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
    PD_ASSIGN_OR_RETURN(out->values[name],
                        OfFile(path, ParseTensor(file, alignment)));
    out->form = FoundParams::Form::kSeparate;
  }
  return absl::OkStatus();
}

// A state dict, under the parameters' own names where it says them.
absl::Status ReadState(const std::string& path, Alignment alignment,
                       FoundParams* out) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  PD_ASSIGN_OR_RETURN(StateDict state,
                      OfFile(path, ParseStateDict(file, alignment)));
  for (const auto& [structured, parameter] : state.parameter_names) {
    auto node = state.tensors.extract(structured);
    if (node.empty()) continue;
    node.key() = parameter;
    state.tensors.insert(std::move(node));
  }
  out->values.merge(state.tensors);
  out->form = FoundParams::Form::kState;
  if (out->path.empty()) out->path = path;
  return absl::OkStatus();
}

// The joint file of a folder whose program has a name of the user's choice.
std::string JointInFolder(const std::string& folder,
                          const std::string& program) {
  for (const char* name : {"__params__", "params", "weights"})
    if (const auto path = absl::StrCat(folder, "/", name); IsFile(path))
      return path;
  std::vector<std::string> others = FilesOf(folder);
  others.erase(std::remove(others.begin(), others.end(), program),
               others.end());
  if (others.size() != 1) return "";
  const std::string path = absl::StrCat(folder, "/", others[0]);
  const auto kind = DetectFile(path);
  return kind.ok() && *kind == FileKind::kTensorStream ? path : "";
}

}  // namespace

bool StaysInside(const std::string& name) {
  if (name.find('\0') != std::string::npos) return false;
  for (const absl::string_view part : absl::StrSplit(name, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

std::string ProgramBeside(const std::string& path) {
  absl::string_view prefix = path;
  std::string program;
  if (absl::ConsumeSuffix(&prefix, ".pdiparams"))
    program = absl::StrCat(prefix, ".pdmodel");
  else if (absl::ConsumeSuffix(&prefix, "__params__"))
    program = absl::StrCat(prefix, "__model__");
  return !program.empty() && Exists(program) ? program : "";
}

absl::StatusOr<std::string> ProgramInFolder(const std::string& folder) {
  for (const char* name : {"__model__", "model"})
    if (const auto path = absl::StrCat(folder, "/", name); IsFile(path))
      return path;
  std::string found;
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = absl::StrCat(folder, "/", name);
    const auto kind = DetectFile(path);
    if (!kind.ok() || *kind != FileKind::kPdModel) continue;
    if (!found.empty())
      return InvalidArgument(
          "folder '%s' holds several programs: '%s' and '%s'", folder, found,
          path);
    found = path;
  }
  if (found.empty()) return NotFound("folder '%s' holds no program", folder);
  return found;
}

absl::StatusOr<std::string> CaffeModelBeside(const std::string& path) {
  constexpr char kEnding[] = ".caffemodel";
  const fs::path file(path);
  const std::string same = fs::path(file).replace_extension(kEnding).string();
  if (IsFile(same)) return same;
  const std::string folder =
      file.has_parent_path() ? file.parent_path().string() : ".";
  std::string found;
  for (const std::string& name : FilesOf(folder)) {
    if (!absl::EndsWith(name, kEnding)) continue;
    const std::string other = absl::StrCat(folder, "/", name);
    if (!found.empty())
      return InvalidArgument(
          "beside '%s' stand '%s' and '%s'; give the one with its weights "
          "the name '%s'",
          path, found, other, same);
    found = other;
  }
  return found;
}

absl::StatusOr<FoundParams> FindParams(const std::string& path,
                                       const ProgramDesc& program,
                                       Alignment alignment) {
  FoundParams found;
  absl::string_view prefix = path;
  if (!absl::ConsumeSuffix(&prefix, ".pdmodel")) {
    const fs::path file(path);
    const std::string folder =
        file.has_parent_path() ? file.parent_path().string() : ".";
    std::string joint = absl::StrCat(folder, "/__params__");
    if (absl::EndsWith(path, "__model__") && file.filename() != "__model__")
      joint = absl::StrCat(absl::StripSuffix(path, "__model__"), "__params__");
    else if (!IsFile(joint))
      joint = JointInFolder(folder, file.filename().string());
    if (!joint.empty() && IsFile(joint))
      PD_RETURN_IF_ERROR(ReadJoint(joint, program, alignment, &found));
    else if (file.filename() == "__model__" || file.filename() == "model")
      PD_RETURN_IF_ERROR(ReadSeparate(folder, program, alignment, &found));
    return found;
  }
  const std::string joint = absl::StrCat(prefix, ".pdiparams");
  if (Exists(joint)) {
    PD_RETURN_IF_ERROR(ReadJoint(joint, program, alignment, &found));
    return found;
  }
  for (const char* ending : {".pdparams", ".pdopt"}) {
    const std::string state = absl::StrCat(prefix, ending);
    if (Exists(state)) PD_RETURN_IF_ERROR(ReadState(state, alignment, &found));
  }
  return found;
}

absl::StatusOr<FoundParams> ReadParams(const std::string& params,
                                       const ProgramDesc& program,
                                       Alignment alignment) {
  PD_ASSIGN_OR_RETURN(const FileKind kind, DetectFile(params));
  FoundParams found;
  if (kind == FileKind::kTensorStream) {
    PD_RETURN_IF_ERROR(ReadJoint(params, program, alignment, &found));
  } else if (kind == FileKind::kPickle) {
    PD_RETURN_IF_ERROR(ReadState(params, alignment, &found));
  } else {
    return InvalidArgument(
        "'%s' holds no parameters of a program; expected a file such as "
        ".pdiparams or .pdparams",
        params);
  }
  return found;
}

absl::StatusOr<NamedArrays> ReadTensorFolder(const std::string& folder,
                                             Alignment alignment) {
  NamedArrays arrays;
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = absl::StrCat(folder, "/", name);
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
    PD_ASSIGN_OR_RETURN(arrays[name],
                        OfFile(path, ParseTensor(file, alignment)));
  }
  if (arrays.empty()) return NotFound("folder '%s' holds no file", folder);
  return arrays;
}

absl::Status OfFile(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  const fs::path file(path);
  const std::string folder = file.parent_path().string();
  for (const std::string& place :
       {absl::StrCat("'", path, "'"),
        absl::StrCat("'", fs::path(path).replace_extension().string(), "."),
        absl::StrCat("'", folder.empty() ? "." : folder, "/")})
    if (absl::StartsWith(status.message(), place)) return status;
  return Annotate(status, absl::StrCat("'", path, "'"));
}

absl::Status InOneLine(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(), {{"\n", "\\n"}, {"\r", "\\r"}}));
}

}  // namespace pd
