// SPDX-License-Identifier: Apache-2.0
// `pd-train --run-check`: does this installation compute? PaddlePaddle calls it
// paddle.utils.run_check.
#ifndef PD_CMD_RUN_CHECK_H_
#define PD_CMD_RUN_CHECK_H_

#include <ostream>

#include "absl/status/status.h"

namespace pd {

/// Trains three steps of a linear regression on the CPU, on each GPU and in two
/// processes of this machine, each in a process of its own, and holds the
/// losses against the formula's, computed here in float64. Prints a line for
/// each, or one JSON object. AnswerNo where one does not work; a device that
/// the machine does not have is none of them.
absl::Status RunCheck(bool json, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_RUN_CHECK_H_
