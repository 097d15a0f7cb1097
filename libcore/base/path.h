// SPDX-License-Identifier: Apache-2.0
// Questions about a path that are no errors where the answer is no: a path that
// cannot be looked at (no permission, a name that is too long) is not there.
#ifndef PD_LIBCORE_BASE_PATH_H_
#define PD_LIBCORE_BASE_PATH_H_

#include <string>

namespace pd {

/// True for a file, a folder, a device or a pipe; links are followed.
bool Exists(const std::string& path);

/// True for a regular file.
bool IsFile(const std::string& path);

/// True for a folder.
bool IsFolder(const std::string& path);

/// The folder that a file is in or would be in: "runs" for "runs/job.pbtxt",
/// "." for "job.pbtxt".
std::string FolderOf(const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_PATH_H_
