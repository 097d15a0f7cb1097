// SPDX-License-Identifier: Apache-2.0
// Output of pd-check-naninf, and of pd-train and pd-eval with --check-nan-inf:
// PaddlePaddle's lines, then everything else that is known.
#ifndef PD_CMD_COMMON_NAN_REPORT_H_
#define PD_CMD_COMMON_NAN_REPORT_H_

#include <iosfwd>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/check/nan_finding.h"
#include "libcore/exec/nan_rules.h"

namespace pd {

/// For people; ends with a line break.
std::string FindingText(const NanFinding& finding);
/// One JSON object in one line, without a line break.
std::string FindingJson(const NanFinding& finding);

/// The status of a tool when a check for NaN and Inf stopped with `status`:
/// the finding on `out`, where there is one, and an answer of no. Other errors
/// and OK stay as they are.
absl::Status ReportNan(const absl::Status& status,
                       const std::optional<NanFinding>& finding, bool json,
                       std::ostream& out);

/// The environment's rules; a mistake there is a usage error.
absl::StatusOr<NanRules> NanRulesOfEnvironment();

}  // namespace pd

#endif  // PD_CMD_COMMON_NAN_REPORT_H_
