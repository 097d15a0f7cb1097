// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/engine_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"

namespace pd {
namespace serve {
namespace {

// The folder of libpd.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 ||
      info.dli_fname == nullptr)
    return ".";
  return FolderOf(info.dli_fname);
}

}  // namespace

absl::StatusOr<void*> EngineFunction(const char* file, const char* function,
                                     const char* package) {
  const std::string path = absl::StrCat(OwnFolder(), "/", file);
  if (!Exists(path))
    return Unavailable(
        "a server needs '%s', which is not there: this build of pdkit was made "
        "without %s",
        path, package);
  void* const handle = dlopen(path.c_str(), RTLD_NOW);
  if (handle == nullptr)
    return Unavailable("cannot load '%s': %s", path, dlerror());
  void* const found = dlsym(handle, function);
  if (found == nullptr)
    return Unavailable("'%s' is not of this pdkit: it lacks %s", path,
                       function);
  return found;
}

}  // namespace serve
}  // namespace pd
