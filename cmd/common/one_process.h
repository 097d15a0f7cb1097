// SPDX-License-Identifier: Apache-2.0
// Launchers such as paddle.distributed.launch and mpirun start several
// processes of a program; pdkit trains in one.
#ifndef PD_CMD_COMMON_ONE_PROCESS_H_
#define PD_CMD_COMMON_ONE_PROCESS_H_

#include "absl/status/status.h"

namespace pd {

/// A usage error where the environment says that this is one of several
/// processes: PADDLE_TRAINERS_NUM, or what MPI's launchers set.
absl::Status RequireOneProcess();

}  // namespace pd

#endif  // PD_CMD_COMMON_ONE_PROCESS_H_
