// SPDX-License-Identifier: Apache-2.0
// --processes: starts this program several times.
#ifndef PD_CMD_COMMON_LAUNCHER_H_
#define PD_CMD_COMMON_LAUNCHER_H_

#include <cstdint>

#include "absl/status/status.h"

namespace pd {

/// Starts this program's command line `processes` times, in the environment of
/// paddle.distributed.launch on addresses of this machine, and waits. Rank 0
/// has the standard streams; what the others write to standard error is
/// passed on with "rank N: " before each line. Signals are passed on. When one
/// process fails, the others have a few seconds to end by themselves. The
/// status is that of the first process that failed; it has said why. Up to
/// `restarts` times, processes that failed otherwise than by what the command
/// line says are all started again, with --resume.
absl::Status LaunchProcesses(int processes, int64_t restarts,
                             char* const* argv);

}  // namespace pd

#endif  // PD_CMD_COMMON_LAUNCHER_H_
