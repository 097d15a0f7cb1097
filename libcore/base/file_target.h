// SPDX-License-Identifier: Apache-2.0
// Where a path leads whose file is to be written. A regular file is written
// beside its target and renamed over it; standard output, devices, pipes and
// open descriptors are written as they are, because a rename would put a
// regular file in the place of the device.
#ifndef PD_LIBCORE_BASE_FILE_TARGET_H_
#define PD_LIBCORE_BASE_FILE_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// The path that stands for standard input or output. It is never a file: a
/// file of that name is "./-".
inline constexpr absl::string_view kStandardStream = "-";

/// A place to write to.
struct FileTarget {
  enum class Kind {
    kReplaced,  ///< a regular file, or none yet
    kDirect,    ///< standard output, a device, a pipe, an open descriptor
  };
  Kind kind = Kind::kReplaced;
  std::string shown;  ///< for messages: "'out.npz'", "standard output"
  std::string place;  ///< the path behind all symbolic links
  /// The descriptor of this process that the path means ("-",
  /// "/dev/stdout", "/dev/fd/5"), else -1.
  int descriptor = -1;

  bool direct() const { return kind == Kind::kDirect; }
};

/// Follows symbolic links, one after the other; the last may lead to a file
/// that is not there yet. InvalidArgument for a folder and for links in a
/// circle; messages name the path.
absl::StatusOr<FileTarget> ResolveTarget(const std::string& path);

/// Opens a direct target for writing: a copy of its descriptor, which shares
/// the place in the file with it, or the device. DeadlineExceeded for a named
/// pipe that nobody opens for reading within ten seconds.
absl::StatusOr<int> OpenDirect(const FileTarget& target);

/// True for what ResolveTarget finds to be direct; false also where it fails.
bool IsDirectTarget(const std::string& path);

/// InvalidArgument where `prefix` is "-", a device, a pipe or a descriptor:
/// none of them takes the several files of `what` ("a model").
absl::Status CheckPrefix(const std::string& prefix, absl::string_view what);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FILE_TARGET_H_
