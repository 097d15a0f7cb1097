// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/engine.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "libcore/train/resolve_job.h"

namespace pd {

absl::StatusOr<LoadedJob> ReadJobFor(const std::string& config,
                                     std::vector<std::string> overrides,
                                     std::optional<int64_t> seed,
                                     const std::string& run) {
  if (seed.has_value()) overrides.push_back(absl::StrCat("train.seed=", *seed));
  const absl::StatusOr<LoadedJob> job = ReadJob(config, overrides);
  if (!job.ok()) return UsageError(job.status());
  absl::StatusOr<LoadedJob> resolved = ResolveJob(*job, run);
  if (!resolved.ok()) return MarkJobErrors(*job, resolved.status());
  return resolved;
}

absl::Status MarkJobErrors(const LoadedJob& job, const absl::Status& status) {
  const std::string message(status.message());
  return message.rfind(absl::StrCat(job.path(), ":"), 0) == 0 ||
                 message.rfind("-o ", 0) == 0
             ? UsageError(status)
             : status;
}

}  // namespace pd
