// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EVAL_TEXT_H_
#define PD_CMD_EVAL_TEXT_H_

#include <iosfwd>
#include <vector>

#include "cmd/common/requirement.h"
#include "libcore/train/evaluator.h"

namespace pd {

/// Loss, metrics, tables of classes and requirements, for people or as one line
/// of JSON.
void PrintEvaluation(const EvaluationResult& result,
                     const std::vector<Judgement>& judgements, bool json,
                     std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EVAL_TEXT_H_
