// SPDX-License-Identifier: Apache-2.0
// The output of pd-check-naninf besides a finding.
#ifndef PD_CMD_CHECK_NANINF_TEXT_H_
#define PD_CMD_CHECK_NANINF_TEXT_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/check_naninf_options.h"
#include "libcore/check/half_ranges.h"
#include "libcore/check/nan_finding.h"
#include "libcore/check/nan_guard.h"
#include "libcore/exec/nan_rules.h"

namespace pd {

/// The environment's rules and the options' in their place.
absl::StatusOr<NanRules> RulesOf(const CheckNaninfOptions& options);

/// The number of items checked, for the line that says that all is well.
struct Checked {
  int64_t count = 0;
  std::string unit;  ///< "steps", "operators"
};

/// Prints the finding, else that all is well; with --half the ranges; with
/// --dump saves the operator. AnswerNo for a finding, `status` when that is
/// another error.
absl::Status ReportCheck(const CheckNaninfOptions& options,
                         const absl::Status& status,
                         const std::optional<NanFinding>& finding,
                         const Checked& checked, const HalfRanges& ranges,
                         std::ostream& out);

/// A table of ranges and what they mean, for people.
std::string HalfText(const HalfRanges& ranges);
/// The same as a JSON list.
std::string HalfJson(const HalfRanges& ranges);

/// "step 5: gradients norm 0.31, largest 0.04 in 'fc.weight@GRAD'; loss ...",
/// or a JSON object; without a line break.
std::string WatchLine(int64_t step, const std::vector<WatchedKind>& kinds,
                      bool json);

}  // namespace pd

#endif  // PD_CMD_CHECK_NANINF_TEXT_H_
