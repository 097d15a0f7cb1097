// SPDX-License-Identifier: Apache-2.0
// pd-eval --serve: models over HTTP.
#ifndef PD_CMD_EVAL_SERVE_H_
#define PD_CMD_EVAL_SERVE_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/eval_options.h"

namespace pd {

/// Prints the address and answers until SIGTERM or SIGINT, then OK when all
/// that came is answered. SIGHUP: looks for new and changed models.
absl::Status ServeModels(const EvalOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_SERVE_H_
