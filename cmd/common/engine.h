// SPDX-License-Identifier: Apache-2.0
// How every tool reads its job, and says what is wrong with it.
#ifndef PD_CMD_COMMON_ENGINE_H_
#define PD_CMD_COMMON_ENGINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/common/common_options.h"
#include "libcore/nn/job.h"

namespace pd {

/// ReadJob with --seed as its last override, and what it leaves open looked up
/// in its training data (ResolveJob, for `run`). Errors of the job are usage
/// errors.
absl::StatusOr<LoadedJob> ReadJobFor(const std::string& config,
                                     std::vector<std::string> overrides,
                                     std::optional<int64_t> seed,
                                     const std::string& run = "");

/// An error in the job (a message that starts with a place in it, or
/// with an override) is a usage error; with files, a failure.
absl::Status MarkJobErrors(const LoadedJob& job, const absl::Status& status);

/// Sets the threads that a job's `distributed` says, unless --threads does, and
/// holds the job against the processes that work together: a UsageError where
/// it does not say how several train, or where their jobs or threads differ.
absl::Status FitJobToProcesses(const CommonOptions& options,
                               const LoadedJob& job);

}  // namespace pd

#endif  // PD_CMD_COMMON_ENGINE_H_
