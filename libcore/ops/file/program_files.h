// SPDX-License-Identifier: Apache-2.0
// The files that a program's operators may touch. A program comes out of a file
// that nobody has read, so it has no files of its own choice: it reads and
// writes below one folder, which the user names by FLAGS_program_files, and
// nowhere without that.
#ifndef PD_LIBCORE_OPS_FILE_PROGRAM_FILES_H_
#define PD_LIBCORE_OPS_FILE_PROGRAM_FILES_H_

#include <string>

#include "absl/status/statusor.h"

namespace pd {

/// Where `path`, as a program says it, lies: below the user's folder, from
/// which a relative one starts. PermissionDenied where no folder is named, and
/// for paths that leave it, by '..' or through links.
absl::StatusOr<std::string> ProgramFile(const std::string& path);

/// The same for a file to be written: folders on the way to it are made.
/// AlreadyExists where the file is there and `overwrite` is false.
absl::StatusOr<std::string> ProgramFileToWrite(const std::string& path,
                                               bool overwrite);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_FILE_PROGRAM_FILES_H_
