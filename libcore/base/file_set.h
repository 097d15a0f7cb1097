// SPDX-License-Identifier: Apache-2.0
// Several files that replace their targets together, such as a program and its
// parameters: all are written and synced under other names first, then
// renamed; when a rename fails, those before it are taken back.
#ifndef PD_LIBCORE_BASE_FILE_SET_H_
#define PD_LIBCORE_BASE_FILE_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

class FileSet {
 public:
  FileSet() = default;
  ~FileSet();
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Where to write what shall become `target`, by AtomicFile. The files are
  /// renamed in the reverse of this order, so the one that readers look for
  /// is added first and comes last. InvalidArgument where the target is a
  /// folder, a device or a pipe.
  absl::StatusOr<std::string> Add(const std::string& target);

  /// A file that is gone once the others are there; it need not exist.
  absl::Status AddRemoval(const std::string& target);

  /// Replaces all targets, or leaves every old file as it was and says which
  /// could not be replaced.
  absl::Status Commit();

 private:
  struct Member {
    std::string shown, place;  // place: behind symbolic links
    bool removed = false;      // there is no new file
    bool saved = false;        // the old file has a second name
  };
  absl::Status Replace(Member* member);
  void TakeBack(const Member& member);

  std::vector<Member> members_;
};

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FILE_SET_H_
