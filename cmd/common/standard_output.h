// SPDX-License-Identifier: Apache-2.0
// Standard output that remembers why a write failed, so that a full disk or a
// closed pipe becomes an error with a reason and never a success.
#ifndef PD_CMD_COMMON_STANDARD_OUTPUT_H_
#define PD_CMD_COMMON_STANDARD_OUTPUT_H_

#include <array>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd {

/// Takes the places of those of the three standard descriptors that are closed,
/// so that no file that is opened later gets the number of one of them and,
/// with it, what is printed. Using the stream stays an error.
void OccupyClosedStreams();

/// A buffered stream over a file descriptor, which it does not close. `name`
/// is what messages call it. To a terminal only what PrintableLines leaves of
/// it is written.
class OutputStream : private std::streambuf, public std::ostream {
 public:
  OutputStream(int fd, std::string name);
  ~OutputStream() override;

  /// Flushes. The kind of the first write's errno when one failed, now or
  /// before.
  absl::Status Finish();

 private:
  int overflow(int c) override;
  int sync() override;
  bool WriteOut(bool last = false);
  void Write(absl::string_view bytes);

  const int fd_;
  const bool terminal_;
  const std::string name_;
  int error_ = 0;
  std::array<char, 1 << 14> buffer_;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_STANDARD_OUTPUT_H_
