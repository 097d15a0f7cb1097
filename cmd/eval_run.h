// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_RUN_H_
#define PD_CMD_EVAL_RUN_H_

#include <iosfwd>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "cmd/eval_options.h"
#include "libcore/ir/array.h"

namespace pd {

/// Evaluates, runs, differentiates or times as the options say.
absl::Status RunEval(const EvalOptions& options, std::ostream& out);

/// Results that are called otherwise than the variables that they are of.
using ResultVariables = std::map<std::string, std::string>;

/// --out and --expect: writes the results, compares them, prints what differs.
/// AnswerNo when something does. `evaluation` is "" or a JSON object that what
/// is printed of the comparison is added to. `variables` are named where
/// results are listed.
absl::Status DeliverResults(const EvalOptions& options,
                            const NamedArrays& results,
                            const std::string& evaluation, std::ostream& out,
                            const ResultVariables& variables = {});

}  // namespace pd

#endif  // PD_CMD_EVAL_RUN_H_
