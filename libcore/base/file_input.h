// SPDX-License-Identifier: Apache-2.0
// Inputs of ReadFile that are no regular files: standard input, pipes,
// terminals. None of them says beforehand how long it is, so every wait and
// every length has a bound.
#ifndef PD_LIBCORE_BASE_FILE_INPUT_H_
#define PD_LIBCORE_BASE_FILE_INPUT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"

namespace pd {

/// Something opened for reading; the caller closes `fd`.
struct FileInput {
  int fd = -1;
  std::string shown;  ///< for messages: "'in.npz'", "standard input"
  /// A named pipe that was opened without waiting for who writes it.
  bool awaits_writer = false;
};

/// Opens a file, a pipe, a terminal, /dev/null, or standard input for "-",
/// which can be taken once: FailedPrecondition the second time.
/// InvalidArgument for a folder and for any other device, which has no end.
absl::StatusOr<FileInput> OpenInput(const std::string& path);

/// Waits for bytes and reads some, at most `room`; 0 at the end.
/// DeadlineExceeded when nobody opens a named pipe for writing within ten
/// seconds.
absl::StatusOr<size_t> ReadSome(FileInput* input, std::byte* to, size_t room);

/// Reads until the end, on a heap of its own. DeadlineExceeded when nobody
/// opens a named pipe for writing within ten seconds; ResourceExhausted when
/// there is more than half of the machine's memory holds.
absl::StatusOr<FileBytes> ReadStream(FileInput input);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FILE_INPUT_H_
