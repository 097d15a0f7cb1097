// SPDX-License-Identifier: Apache-2.0
// What every tool that computes starts with.
#ifndef PD_CMD_COMMON_ENGINE_H_
#define PD_CMD_COMMON_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Every op with every implementation that this machine can use.
absl::StatusOr<std::unique_ptr<OpRegistry>> MakeRegistry();

/// ReadJob with --seed as its last override; errors are usage errors.
absl::StatusOr<LoadedJob> ReadJobFor(const std::string& config,
                                     std::vector<std::string> overrides,
                                     std::optional<int64_t> seed);

/// What is wrong with the job (a message that starts with a place in it, or
/// with an override) is a usage error; with files, a failure.
absl::Status MarkJobErrors(const LoadedJob& job, const absl::Status& status);

}  // namespace pd

#endif  // PD_CMD_COMMON_ENGINE_H_
