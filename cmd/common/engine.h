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

}  // namespace pd

#endif  // PD_CMD_COMMON_ENGINE_H_
