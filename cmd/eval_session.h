// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_SESSION_H_
#define PD_CMD_EVAL_SESSION_H_

#include "cmd/eval_options.h"
#include "libcore/exec/session.h"

namespace pd {

/// Sets a session to the passes and the precision of the options, for programs
/// that only infer.
void PrepareSession(const EvalOptions& options, Session* session);

}  // namespace pd

#endif  // PD_CMD_EVAL_SESSION_H_
