// SPDX-License-Identifier: Apache-2.0
// A shared library that is looked for when it is needed, so that one binary
// runs on machines with and without it. Who asks gets the library or a sentence
// that says where it was looked for.
#ifndef PD_LIBCORE_DEVICE_DYNAMIC_LIBRARY_H_
#define PD_LIBCORE_DEVICE_DYNAMIC_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

/// The library to look for, and the folders to search.
struct LibraryQuery {
  std::string title;                 ///< "the NVIDIA driver"
  std::vector<std::string> files;    ///< "libcudnn.so.9"; the best one first
  std::string flag;                  ///< names folders that go first
  std::vector<std::string> folders;  ///< after the system's own places
};

class DynamicLibrary {
 public:
  /// Tries the folders of the flag, what dlopen searches (LD_LIBRARY_PATH, the
  /// system's cache and folders), then `folders`. Unavailable names the files
  /// and every place, and what was wrong with one that is there.
  static absl::StatusOr<DynamicLibrary> Open(const LibraryQuery& query);

  /// The function `symbol`. Unavailable when the library has none.
  template <typename Function>
  absl::Status Bind(const char* symbol, Function* function) const {
    void* address = nullptr;
    absl::Status status = Find(symbol, &address);
    if (status.ok()) *function = reinterpret_cast<Function>(address);
    return status;
  }

  /// The file that was taken.
  const std::string& path() const { return path_; }
  const std::string& title() const { return title_; }

 private:
  absl::Status Find(const char* symbol, void** address) const;

  std::shared_ptr<void> handle_;
  std::string path_, title_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_DYNAMIC_LIBRARY_H_
