// SPDX-License-Identifier: Apache-2.0
// Temporary files that stand beside what they shall replace, NAME.tmpXXXXXX.
// Their writer holds a lock on them, which the system takes back when the
// process ends, however it ends: one that nobody holds was left by a killed
// process and may be removed.
#ifndef PD_LIBCORE_BASE_FILE_REMAINS_H_
#define PD_LIBCORE_BASE_FILE_REMAINS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// A temporary file, open and held.
struct TemporaryFile {
  int fd = -1;
  std::string path;
};

/// Makes one beside `target`, readable as the umask has it. The errno's kind
/// when that fails; `shown` names the target in the message.
absl::StatusOr<TemporaryFile> MakeTemporary(const std::string& target,
                                            absl::string_view shown);

/// Removes what killed processes left of `target`. A process reads each
/// folder once, so a folder of many files costs no more than one.
void RemoveRemainsOf(const std::string& target);

/// Removes what killed processes left of any file in `folder`, which must be
/// a folder of our own, such as a run.
void RemoveRemainsIn(const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FILE_REMAINS_H_
