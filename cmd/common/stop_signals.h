// SPDX-License-Identifier: Apache-2.0
// Stopping between steps. The first SIGINT or SIGTERM only sets a flag; a
// second one ends the process at once, as if it had no handler.
#ifndef PD_CMD_COMMON_STOP_SIGNALS_H_
#define PD_CMD_COMMON_STOP_SIGNALS_H_

#include "absl/strings/string_view.h"

namespace pd {

/// Catches SIGINT and SIGTERM from now on. For tools that have something to
/// save; the others keep the default, which is to end. A signal that was
/// ignored at start (nohup, a background job) stays ignored.
void InstallStopSignals();

/// SIGINT or SIGTERM once one has come, else 0. Asked after each step.
int StopRequested();

/// The same for a server, and SIGHUP. A second SIGTERM changes nothing:
/// supervisors send it to the process and to its group, and what has come is
/// to be answered.
void InstallServerSignals();

/// True once for the SIGHUPs that have come since the last call.
bool TakeHangup();

/// "SIGINT", "SIGTERM", or "a signal".
absl::string_view SignalName(int signal);

/// Turns writes to a closed pipe (SIGPIPE), and those beyond the limit of a
/// file's size (SIGXFSZ), into errors that are reported, in place of an end
/// without a word.
void IgnoreWriteSignals();

}  // namespace pd

#endif  // PD_CMD_COMMON_STOP_SIGNALS_H_
