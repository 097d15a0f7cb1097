// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/file/program_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/flags.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> ProgramFolder(const std::string& path) {
  const auto& folder = GetFlag<std::string>("FLAGS_program_files");
  if (folder.empty())
    return PermissionDenied(
        "the program asks for the file '%s'; programs touch files only below "
        "the folder that '--flags program_files=DIR' names",
        path);
  std::error_code error;
  fs::path root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root, error))
    return NotFound("FLAGS_program_files is '%s', which is no folder", folder);
  return root;
}

}  // namespace

absl::StatusOr<std::string> ProgramFile(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const fs::path root, ProgramFolder(path));
  const fs::path said(path);
  const auto outside = [&] {
    return PermissionDenied(
        "the file '%s' of the program is not below '%s' (FLAGS_program_files)",
        path, root.string());
  };
  if (path.empty() || path.find('\0') != std::string::npos ||
      std::count(said.begin(), said.end(), fs::path("..")) > 0)
    return outside();
  // An absolute path stays as it is: nothing is put before it.
  std::error_code error;
  const fs::path place = fs::weakly_canonical(root / said, error);
  if (error) return outside();
  const auto [left, rest] =
      std::mismatch(root.begin(), root.end(), place.begin(), place.end());
  if (left != root.end() || rest == place.end()) return outside();
  // A link that leads nowhere yet would be followed by writing.
  if (fs::is_symlink(fs::symlink_status(place, error))) return outside();
  return place.string();
}

absl::StatusOr<std::string> ProgramFileToWrite(const std::string& path,
                                               bool overwrite) {
  PD_ASSIGN_OR_RETURN(std::string place, ProgramFile(path));
  if (!overwrite && Exists(place))
    return AlreadyExists(
        "the file '%s' of the program is there, and attr 'overwrite' is false",
        place);
  PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(place)));
  return place;
}

}  // namespace pd
