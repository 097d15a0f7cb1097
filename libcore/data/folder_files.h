// SPDX-License-Identifier: Apache-2.0
// The files of folders, walked as paddle.vision.datasets does: folders in order
// of their whole path, the files of each by name, links followed.
#ifndef PD_LIBCORE_DATA_FOLDER_FILES_H_
#define PD_LIBCORE_DATA_FOLDER_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

struct FolderListing {
  std::vector<std::string> folders, files;  ///< names, sorted
};
/// The folders and files in one folder. Errors name it.
absl::StatusOr<FolderListing> ListFolder(const std::string& path);

/// True where the name ends in one of `endings`, without regard to case.
bool HasEnding(const std::string& name,
               const std::vector<std::string>& endings);

/// Adds the files at and below `path` with one of the endings.
absl::Status CollectFiles(const std::string& path,
                          const std::vector<std::string>& endings,
                          std::vector<std::string>* paths);

/// Paths below `root` without their endings, each with its file. AlreadyExists
/// where two differ in the ending alone.
absl::StatusOr<std::map<std::string, std::string>> FilesByStem(
    const std::string& root, const std::vector<std::string>& paths);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_FOLDER_FILES_H_
