// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/engine.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"
#include "libcore/nn/job.pb.h"
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

absl::Status FitJobToProcesses(const CommonOptions& options,
                               const LoadedJob& job) {
  const bool distributed = job.proto().has_distributed();
  if (distributed && !options.threads.has_value())
    SetThreads(job.proto().distributed().threads());
  World* world = options.world.get();
  if (world == nullptr) return absl::OkStatus();
  if (!distributed)
    return UsageError(InvalidArgument(
        "%d processes train, and the job does not say how: add 'distributed { "
        "shards: %d }', or -o distributed.shards=%d",
        world->size(), world->size(), world->size()));
  PD_RETURN_IF_ERROR(
      UsageError(world->ExpectSame("the job", job.EffectiveText())));
  return UsageError(world->ExpectSame("--threads", absl::StrCat(Threads())));
}

}  // namespace pd
