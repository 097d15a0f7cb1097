// SPDX-License-Identifier: Apache-2.0
// A tool as one of several processes: mpirun, srun, paddle.distributed.launch
// and the like have started them, or --processes does.
#ifndef PD_CMD_COMMON_PROCESSES_H_
#define PD_CMD_COMMON_PROCESSES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/common/manual.h"
#include "cmd/common/option_table.h"
#include "libcore/dist/world.h"

namespace pd {

struct ProcessOptions {
  std::optional<int64_t> processes;  ///< to start here
  int64_t max_restarts = 0;          ///< of all of them, when one fails
  double rendezvous_timeout = 60;    ///< seconds until all are there
  double silence_timeout = 10;       ///< seconds without a sign of life
  double collective_timeout = 1800;  ///< seconds that an operation waits
  std::vector<std::string> rings;    ///< "7=0,2"
  std::string log_dir;    ///< where --processes files their lines; "": nowhere
  std::string log_needs;  ///< a folder that has to be there before; "": none
};

/// Adds the options, under the title "Processes".
void BindProcessOptions(OptionTable* table, ProcessOptions* options);

/// The environment variables that launchers set, for the manual.
std::vector<Manual::Entry> ProcessEnvironment();

/// The place of this process where the environment says that it is one of
/// several. UsageError for an environment that contradicts itself.
absl::StatusOr<std::optional<LaunchedBy>> LaunchedHere(
    const ProcessOptions& options);

/// A UsageError where the environment says that this is one of several
/// processes: for tools that work alone.
absl::Status RequireOneProcess();

/// Connects, divides the machine's cores among its processes unless
/// `threads_given`, declares the rings of --ring, and quiets every rank but 0.
/// From then on the process ends with status 3 and a line by `tool` when
/// another one is gone.
absl::StatusOr<std::shared_ptr<World>> JoinProcesses(
    const std::string& tool, const ProcessOptions& options,
    const LaunchedBy& launch, bool threads_given);

/// The rings of --ring.
absl::StatusOr<std::vector<RingClaim>> RingsOfOptions(
    const ProcessOptions& options);

/// `%r` in `text` replaced by the rank, 0 without a world.
std::string ForRank(const std::string& text, const World* world);

/// How the work ended, for the others too: a run that failed says which process
/// is gone, where one is.
absl::Status LeaveProcesses(World* world, absl::Status status);

}  // namespace pd

#endif  // PD_CMD_COMMON_PROCESSES_H_
