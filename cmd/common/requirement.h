// SPDX-License-Identifier: Apache-2.0
// --require 'acc>=0.99': what the results of an evaluation must be.
#ifndef PD_CMD_COMMON_REQUIREMENT_H_
#define PD_CMD_COMMON_REQUIREMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/metric_results.h"
#include "libcore/train/evaluator.h"

namespace pd {

struct Requirement {
  enum class Operator { kLess, kAtMost, kEqual, kAtLeast, kMore };
  std::string text;  ///< as it was given
  std::string name;
  Operator op = Operator::kAtLeast;
  double bound = 0;

  /// Never for NaN.
  bool MetBy(double value) const;
};

/// Each text is NAME, one of >= > <= < ==, and a number.
absl::StatusOr<std::vector<Requirement>> ParseRequirements(
    const std::vector<std::string>& texts);

/// UsageError, listing what there is, for a name that no result has.
absl::Status CheckRequirements(const std::vector<Requirement>& requirements,
                               const std::vector<ResultInfo>& results);

struct Judgement {
  Requirement requirement;
  double value = 0;
  bool met = false;
};
std::vector<Judgement> Judge(const std::vector<Requirement>& requirements,
                             const EvaluationResult& result);

/// AnswerNo naming all that were missed and their values.
absl::Status MissedRequirements(const std::vector<Judgement>& judgements);

}  // namespace pd

#endif  // PD_CMD_COMMON_REQUIREMENT_H_
