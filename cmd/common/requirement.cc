// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/requirement.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Operator = Requirement::Operator;

// Longer ones first.
constexpr std::pair<const char*, Operator> kOperators[] = {
    {">=", Operator::kAtLeast}, {"<=", Operator::kAtMost},
    {"==", Operator::kEqual},   {">", Operator::kMore},
    {"<", Operator::kLess},
};

absl::StatusOr<Requirement> Parse(const std::string& text) {
  Requirement requirement;
  requirement.text = text;
  const size_t at = text.find_first_of("<>=!");
  const absl::string_view all = text;
  for (const auto& [sign, op] : kOperators) {
    if (at == std::string::npos || !absl::StartsWith(all.substr(at), sign))
      continue;
    const absl::string_view number =
        absl::StripAsciiWhitespace(all.substr(at + std::string(sign).size()));
    requirement.name =
        std::string(absl::StripAsciiWhitespace(all.substr(0, at)));
    requirement.op = op;
    if (!requirement.name.empty() &&
        absl::SimpleAtod(number, &requirement.bound) &&
        std::isfinite(requirement.bound))
      return requirement;
    break;
  }
  return CommandLineError(
      absl::StrCat("--require '", text,
                   "' is not of the form NAME>=NUMBER; there are >=, >, <=, < "
                   "and =="));
}

}  // namespace

bool Requirement::MetBy(double value) const {
  switch (op) {
    case Operator::kLess:
      return value < bound;
    case Operator::kAtMost:
      return value <= bound;
    case Operator::kEqual:
      return value == bound;
    case Operator::kAtLeast:
      return value >= bound;
    case Operator::kMore:
      return value > bound;
  }
  return false;
}

absl::StatusOr<std::vector<Requirement>> ParseRequirements(
    const std::vector<std::string>& texts) {
  std::vector<Requirement> requirements;
  for (const std::string& text : texts) {
    PD_ASSIGN_OR_RETURN(Requirement requirement, Parse(text));
    requirements.push_back(std::move(requirement));
  }
  return requirements;
}

absl::Status CheckRequirements(const std::vector<Requirement>& requirements,
                               const std::vector<ResultInfo>& results) {
  for (const Requirement& requirement : requirements)
    if (FindResult(results, requirement.name) == nullptr)
      return UsageError(InvalidArgument(
          "--require '%s': evaluation gives no '%s'; there %s %s",
          requirement.text, requirement.name,
          results.size() == 1 ? "is" : "are",
          results.empty() ? "no results" : NamesOf(results)));
  return absl::OkStatus();
}

std::vector<Judgement> Judge(const std::vector<Requirement>& requirements,
                             const EvaluationResult& result) {
  std::vector<Judgement> judgements;
  for (const Requirement& requirement : requirements) {
    const double value =
        result.Find(requirement.name)
            .value_or(std::numeric_limits<double>::quiet_NaN());
    judgements.push_back({requirement, value, requirement.MetBy(value)});
  }
  return judgements;
}

absl::Status MissedRequirements(const std::vector<Judgement>& judgements) {
  std::vector<std::string> missed;
  for (const Judgement& judgement : judgements)
    if (!judgement.met)
      missed.push_back(
          absl::StrFormat("%s (%s is %.9g)", judgement.requirement.text,
                          judgement.requirement.name, judgement.value));
  if (missed.empty()) return absl::OkStatus();
  return AnswerNo(
      absl::StrCat(missed.size(), " of ", judgements.size(),
                   " requirements missed: ", absl::StrJoin(missed, ", ")));
}

}  // namespace pd
