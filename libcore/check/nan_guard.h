// SPDX-License-Identifier: Apache-2.0
// A check for NaN and Inf over a whole training: plans look at every value that
// they make (NanCheck), and when one is bad the step is undone and run again,
// closely (FindNan). For that the variables are copied now and then, so rarely
// that it does not show; steps since the last copy are repeated with the same
// bits.
#ifndef PD_LIBCORE_CHECK_NAN_GUARD_H_
#define PD_LIBCORE_CHECK_NAN_GUARD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/check/nan_finder.h"
#include "libcore/check/nan_finding.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/session.h"

namespace pd {

/// The kinds of values that can be watched: "loss", "gradients", "parameters",
/// "state" (other persistable variables: moments, statistics), "activations".
const std::vector<std::string>& WatchKinds();

/// How large the values of a kind were in a step.
struct WatchedKind {
  std::string kind;
  double norm = 0;     ///< Euclidean, over all of them; of gradients, those of
                       ///< parameters
  double largest = 0;  ///< magnitude
  std::string largest_in;  ///< the variable
};

struct NanGuardOptions {
  NanRules rules;
  /// Steps that are looked at are confined to these kinds; empty: all. A bad
  /// one is traced back to the first bad value of any kind all the same.
  std::set<std::string> watch;
  int64_t every = 1;   ///< looks at every so many steps
  ValueObserver look;  ///< sees every value of those steps; may be null
  /// Is told of the kinds that are watched after such a step, from 1; may be
  /// null.
  std::function<void(int64_t step, const std::vector<WatchedKind>& kinds)>
      on_watch;
};

/// The programs and variables of a training that a guard has to know.
struct GuardedPrograms {
  std::vector<const ProgramDesc*> programs;
  std::set<std::string> losses;
  std::set<std::string> gradients;  ///< of parameters, before clipping
  const std::vector<LayerInfo>* layers = nullptr;  ///< outlives the guard
};

class NanGuard {
 public:
  explicit NanGuard(NanGuardOptions options) : options_(std::move(options)) {}

  /// From here on the session's plans look. The session outlives the guard.
  void Begin(Session* session, GuardedPrograms programs);

  /// Before step `step` (from 0) runs on `plans`. True: the variables were
  /// copied, so this is where Rewind goes back to.
  /// A step of several runs (phases) is looked at run by run; `run` counts them
  /// from 0, and copies are taken before the first one, or before each while
  /// steps are repeated.
  bool BeforeStep(int64_t step, const std::vector<Plan*>& plans,
                  int64_t run = 0);
  /// The observer of the step's values; null: none.
  std::unique_ptr<StepHook> HookFor(const Plan& plan, int64_t step);
  /// After a step without a finding.
  void AfterStep(int64_t step, const std::vector<Plan*>& plans);
  /// Work between two steps (an evaluation) cannot be repeated: copies anew.
  void Forget() { copied_step_ = -1; }

  int64_t copied_step() const { return copied_step_; }
  /// The copies are those from before this run.
  bool HasCopiesOf(int64_t step, int64_t run) const {
    return copied_step_ == step && copied_run_ == run;
  }
  /// Puts the variables back. Steps that follow are looked at one by one.
  void Rewind();

  /// Takes down what `plan` stopped at. `query` has the program, its fetches,
  /// context and place; the variables must be those from before the run.
  absl::Status Explain(const Plan& plan, NanQuery query);

  const std::optional<NanFinding>& finding() const { return finding_; }

 private:
  struct Copy {
    Scope::Entry* variable;
    Tensor value;
  };
  bool CopyIsDue(int64_t step) const;
  void TakeCopies();
  bool VariablesAreGood() const;
  void Watch(const std::string& variable, const Tensor& value);

  NanGuardOptions options_;
  std::shared_ptr<const NanRules> rules_;
  Session* session_ = nullptr;
  GuardedPrograms programs_;
  std::vector<std::string> written_;  // persistable variables
  std::vector<Copy> copies_;
  int64_t copied_step_ = -1, copied_run_ = 0;
  double copied_at_ = 0, copy_seconds_ = 0;
  bool repeating_ = false;
  std::function<std::string(const std::string&)> kind_of_;
  std::map<std::string, WatchedKind> kinds_;  // of the step at hand
  std::deque<std::pair<int64_t, double>> gradients_;
  std::optional<NanFinding> finding_;
};

}  // namespace pd

#endif  // PD_LIBCORE_CHECK_NAN_GUARD_H_
