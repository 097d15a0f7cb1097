// SPDX-License-Identifier: Apache-2.0
// Runs a program once more to see the first bad number of it closely: as it was
// written, without passes, so that the op is one that its author knows; nothing
// in place, so that the op's inputs are still there.
#ifndef PD_LIBCORE_CHECK_NAN_FINDER_H_
#define PD_LIBCORE_CHECK_NAN_FINDER_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/check/nan_finding.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"

namespace pd {

/// A run that found a bad number, as it was before it ran.
struct NanQuery {
  Session* session = nullptr;  ///< variables hold the values from before
  const ProgramDesc* program = nullptr;  ///< before the passes
  std::vector<FeedSpec> feeds;           ///< with their shapes
  std::vector<const void*> data;         ///< of each
  std::set<std::string> labels;          ///< those that only losses read
  std::vector<std::string> fetches;
  RunContext context;
  std::shared_ptr<const NanRules> rules;           ///< null: the environment's
  const std::vector<LayerInfo>* layers = nullptr;  ///< may be null
  NanPlace place;
};

/// The query of a plan as it is fed now. `names` are its feeds'.
NanQuery QueryOf(const Plan& plan, const std::vector<std::string>& names);

/// The query of a program that is run once on `feeds`, which outlive it. A feed
/// that the program says is persistable becomes that variable's value.
absl::StatusOr<NanQuery> QueryOf(Session* session, const ProgramDesc* program,
                                 const NamedArrays& feeds,
                                 std::vector<std::string> fetches);

/// The first op in program order that makes a bad number; without passes, and
/// where none does (other roundings) with them. Nothing when it does not happen
/// again. Persistable variables are what the part of the run left of them.
absl::StatusOr<std::optional<NanFinding>> FindNan(const NanQuery& query);

/// The finding that `plan` stopped at, without running it again: its inputs
/// may be gone, and so are they here.
NanFinding BriefFinding(const NanQuery& query, const Plan& plan);

/// Sees a value that an op has just written.
using ValueObserver = std::function<void(
    const OpDesc& op, const std::string& variable, const Tensor& value)>;
/// A hook that shows every value of a plan's runs; the plan outlives it.
std::unique_ptr<StepHook> MakeObserverHook(const Plan& plan,
                                           ValueObserver look);
/// Runs everything and shows every value; bad numbers do not stop it.
absl::Status ObserveValues(const NanQuery& query, const ValueObserver& look);

}  // namespace pd

#endif  // PD_LIBCORE_CHECK_NAN_FINDER_H_
