// SPDX-License-Identifier: Apache-2.0
// --processes: starts this program several times.
#ifndef PD_CMD_COMMON_LAUNCHER_H_
#define PD_CMD_COMMON_LAUNCHER_H_

#include "absl/status/status.h"
#include "cmd/common/processes.h"

namespace pd {

/// A variable of the environment: set for processes whose lines are filed, who
/// mark those that are filed only (libcore/base/log_marks.h).
inline constexpr char kFilesLines[] = "PD_LINES_ARE_FILED";

/// Starts this program's command line `options.processes` times, in the
/// environment of paddle.distributed.launch on addresses of this machine, and
/// waits. Rank 0 has the standard streams; what the others write to standard
/// error is passed on with "rank N: " before each line. With a log_dir all of
/// it is filed there too, and of a terminal rank 0 has one of its own. Signals
/// are passed on. When one process fails, the others have as long as they may
/// need to notice to end by themselves. The status is that of the first process
/// that failed; it has said why.
///
/// Up to `options.max_restarts` times, processes that failed otherwise than by
/// what the command line says are started again, with --resume: those that are
/// left, which are all but the ones that a signal ended or that had to be
/// killed, and one at least. After a signal to this process none is.
absl::Status LaunchProcesses(const ProcessOptions& options, char* const* argv);

}  // namespace pd

#endif  // PD_CMD_COMMON_LAUNCHER_H_
