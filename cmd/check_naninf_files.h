// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CHECK_NANINF_FILES_H_
#define PD_CMD_CHECK_NANINF_FILES_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/check_naninf_options.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Looks at every tensor of every file. AnswerNo when one holds NaN or Inf. A
/// file that cannot be read is an error after the others were looked at.
absl::Status CheckFiles(const CheckNaninfOptions& options,
                        const OpRegistry& registry, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_CHECK_NANINF_FILES_H_
