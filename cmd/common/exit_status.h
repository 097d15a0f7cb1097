// SPDX-License-Identifier: Apache-2.0
// The exit statuses of every tool, in one table. A Status says by a mark which
// one it asks for; without a mark it is 3, so code under cmd marks only what it
// knows: that the command line or the job file is at fault (UsageError), that
// the answer is no (AnswerNo), that a signal ended the run (StoppedBySignal).
// The mark is a payload, so Annotate keeps it.
#ifndef PD_CMD_COMMON_EXIT_STATUS_H_
#define PD_CMD_COMMON_EXIT_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitFailed = 3;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitTerminated = 143;

struct ExitMeaning {
  int status;
  std::string meaning;  ///< a sentence's worth, lower case, no full stop
};

/// Every status with its meaning, in number order.
const std::vector<ExitMeaning>& ExitTable();

/// `status` marked as a fault of the command line or the job file: exit 2. OK
/// stays OK, and a mark that is there already stays.
absl::Status UsageError(absl::Status status);

/// UsageError of the command line itself: the printed line points to --help.
absl::Status CommandLineError(absl::string_view message);

/// The work was done and the answer is no (a mismatch, a threshold missed):
/// exit 1; `message` says which.
absl::Status AnswerNo(absl::string_view message);

/// A signal ended the run after what had to be saved was saved: exit 130 for
/// SIGINT, 143 for SIGTERM; `message` says where the run can go on.
absl::Status StoppedBySignal(int signal, absl::string_view message);

/// The exit status that `status` asks for.
int ExitCode(const absl::Status& status);

/// True for CommandLineError.
bool IsCommandLineError(const absl::Status& status);

}  // namespace pd

#endif  // PD_CMD_COMMON_EXIT_STATUS_H_
