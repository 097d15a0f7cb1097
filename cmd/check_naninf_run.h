// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CHECK_NANINF_RUN_H_
#define PD_CMD_CHECK_NANINF_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/check_naninf_options.h"

namespace pd {

/// Looks through a training, a model's run, or files; AnswerNo when there is
/// NaN or Inf.
absl::Status RunCheckNaninf(const CheckNaninfOptions& options,
                            std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_CHECK_NANINF_RUN_H_
