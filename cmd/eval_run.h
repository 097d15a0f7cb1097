// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_RUN_H_
#define PD_CMD_EVAL_RUN_H_

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "cmd/eval_options.h"
#include "libcore/ir/array.h"

namespace pd {

/// Evaluates, runs, differentiates or times as the options say.
absl::Status RunEval(const EvalOptions& options, std::ostream& out);

/// --out and --expect: writes the results, compares them, prints what differs.
/// AnswerNo when something does. `evaluation` is "" or a JSON object that what
/// is printed of the comparison is added to.
absl::Status DeliverResults(const EvalOptions& options,
                            const NamedArrays& results,
                            const std::string& evaluation, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_RUN_H_
