// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_RUN_H_
#define PD_CMD_EVAL_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/eval_options.h"
#include "formats/array.h"

namespace pd {

/// Evaluates, runs, differentiates or times as the options say.
absl::Status RunEval(const EvalOptions& options, std::ostream& out);

/// --out and --expect: writes the results, compares them, prints what differs.
/// AnswerNo when something does.
absl::Status DeliverResults(const EvalOptions& options,
                            const NamedArrays& results, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_RUN_H_
