// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/exit_status.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pd {
namespace {

constexpr char kExitUrl[] = "pdkit/exit-status";
constexpr char kCommandLineUrl[] = "pdkit/command-line";

absl::Status Mark(absl::Status status, int exit_status) {
  if (!status.ok() && !status.GetPayload(kExitUrl).has_value())
    status.SetPayload(kExitUrl, absl::Cord(absl::StrCat(exit_status)));
  return status;
}

}  // namespace

const std::vector<ExitMeaning>& ExitTable() {
  static const auto* table = new std::vector<ExitMeaning>{
      {kExitDone, "done"},
      {kExitNo,
       "it ran and the answer is no: a mismatch, a NaN found, a threshold "
       "missed"},
      {kExitUsage, "the command line or the job file is wrong"},
      {kExitFailed,
       "the work failed: a file that is missing, damaged or cannot be written, "
       "a device that is not there, memory that ran out"},
      {kExitInterrupted,
       "stopped by SIGINT after what had to be saved was saved"},
      {kExitTerminated,
       "stopped by SIGTERM after what had to be saved was saved"},
  };
  return *table;
}

absl::Status UsageError(absl::Status status) {
  return Mark(std::move(status), kExitUsage);
}

absl::Status CommandLineError(absl::string_view message) {
  absl::Status status = UsageError(absl::InvalidArgumentError(message));
  status.SetPayload(kCommandLineUrl, absl::Cord());
  return status;
}

absl::Status AnswerNo(absl::string_view message) {
  return Mark(absl::AbortedError(message), kExitNo);
}

absl::Status StoppedBySignal(int signal, absl::string_view message) {
  return Mark(absl::CancelledError(message), 128 + signal);
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const auto mark = status.GetPayload(kExitUrl);
  int code = kExitFailed;
  if (mark.has_value() && absl::SimpleAtoi(std::string(*mark), &code))
    return code;
  return kExitFailed;
}

bool IsCommandLineError(const absl::Status& status) {
  return status.GetPayload(kCommandLineUrl).has_value();
}

}  // namespace pd
