// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/dynamic_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"

namespace pd {
namespace {

std::vector<std::string> FlagFolders(const std::string& flag) {
  if (flag.empty()) return {};
  return absl::StrSplit(GetFlag<std::string>(flag), ':', absl::SkipEmpty());
}

// The places in words, in the order in which they were searched.
std::string Places(const LibraryQuery& query) {
  std::vector<std::string> places;
  for (const std::string& folder : FlagFolders(query.flag))
    places.push_back(absl::StrCat(folder, " (", query.flag, ")"));
  const char* path = std::getenv("LD_LIBRARY_PATH");
  if (path != nullptr && *path != '\0')
    places.push_back(absl::StrCat(path, " (LD_LIBRARY_PATH)"));
  places.push_back("the system's library folders (ldconfig -p)");
  places.insert(places.end(), query.folders.begin(), query.folders.end());
  return absl::StrJoin(places, ", ");
}

// Where the loader found it.
std::string PathOf(void* handle, const std::string& asked) {
  // Any symbol would do; the link map knows the file without one.
  struct LinkMap {
    void* address;
    char* name;
  };
  const LinkMap* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr ||
      map->name == nullptr || *map->name == '\0')
    return asked;
  return map->name;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const LibraryQuery& query) {
  std::vector<std::string> paths;
  const auto below = [&](const std::string& folder) {
    for (const std::string& file : query.files)
      paths.push_back(absl::StrCat(folder, "/", file));
  };
  for (const std::string& folder : FlagFolders(query.flag)) below(folder);
  paths.insert(paths.end(), query.files.begin(), query.files.end());
  for (const std::string& folder : query.folders) below(folder);
  std::string broken;
  for (const std::string& path : paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      const bool there = path.find('/') != std::string::npos &&
                         access(path.c_str(), F_OK) == 0;
      if (there && reason != nullptr && broken.empty())
        broken = absl::StrCat("; ", reason);
      continue;
    }
    DynamicLibrary library;
    // A driver keeps threads: it stays until the process ends.
    library.handle_ = std::shared_ptr<void>(handle, [](void*) {});
    library.path_ = PathOf(handle, path);
    library.title_ = query.title;
    return library;
  }
  return Unavailable("%s is not there: no %s in %s%s", query.title,
                     absl::StrJoin(query.files, ", no "), Places(query),
                     broken);
}

absl::Status DynamicLibrary::Find(const char* symbol, void** address) const {
  *address = dlsym(handle_.get(), symbol);
  if (*address != nullptr) return absl::OkStatus();
  return Unavailable("%s has no function '%s': '%s' is too old or damaged",
                     title_, symbol, path_);
}

}  // namespace pd
