// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/folder_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Every folder at and below `path`; a link to a folder above itself is met
// once.
absl::Status Walk(const std::string& path,
                  std::set<std::pair<dev_t, ino_t>>* above,
                  std::vector<std::string>* folders) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  const auto id = std::make_pair(info.st_dev, info.st_ino);
  if (!above->insert(id).second) return absl::OkStatus();
  folders->push_back(path);
  PD_ASSIGN_OR_RETURN(const FolderListing listing, ListFolder(path));
  for (const std::string& name : listing.folders)
    PD_RETURN_IF_ERROR(Walk(absl::StrCat(path, "/", name), above, folders));
  above->erase(id);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FolderListing> ListFolder(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr)
    return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  FolderListing listing;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    if (::stat(absl::StrCat(path, "/", name).c_str(), &info) != 0) continue;
    (S_ISDIR(info.st_mode) ? listing.folders : listing.files).push_back(name);
  }
  ::closedir(directory);
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

bool HasEnding(const std::string& name,
               const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&name](const std::string& ending) {
                       return absl::EndsWithIgnoreCase(name, ending);
                     });
}

absl::Status CollectFiles(const std::string& path,
                          const std::vector<std::string>& endings,
                          std::vector<std::string>* paths) {
  std::set<std::pair<dev_t, ino_t>> above;
  std::vector<std::string> folders;
  PD_RETURN_IF_ERROR(Walk(path, &above, &folders));
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    PD_ASSIGN_OR_RETURN(const FolderListing listing, ListFolder(folder));
    for (const std::string& name : listing.files) {
      if (HasEnding(name, endings))
        paths->push_back(absl::StrCat(folder, "/", name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> FilesByStem(
    const std::string& root, const std::vector<std::string>& paths) {
  std::map<std::string, std::string> files;
  for (const std::string& path : paths) {
    const std::string name = path.substr(root.size() + 1);
    const auto [known, fresh] =
        files.emplace(name.substr(0, name.rfind('.')), path);
    if (!fresh)
      return AlreadyExists("'%s' and '%s' differ in the ending alone",
                           known->second, path);
  }
  return files;
}

}  // namespace pd
