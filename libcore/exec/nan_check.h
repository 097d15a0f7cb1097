// SPDX-License-Identifier: Apache-2.0
// FLAGS_check_nan_inf: stops at the first op whose output holds NaN or Inf.
// Every output is checked once, directly after its op has written it. The error
// has the counts and the output's name; FindNan (libcore/check/nan_finder.h)
// finds the cause.
#ifndef PD_LIBCORE_EXEC_NAN_CHECK_H_
#define PD_LIBCORE_EXEC_NAN_CHECK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/exec/nan_rules.h"
#include "libcore/exec/plan.h"

namespace pd {

/// The first output of a run that holds NaN or Inf.
struct NonFiniteOutput {
  size_t step = 0;       ///< of the plan
  int32_t block = 0;     ///< of the op; not 0 in a sub-block
  size_t index = 0;      ///< of the op in its block
  OpDesc op;             ///< normalized
  std::string variable;  ///< the output
  int64_t nan = 0, inf = 0;
};

/// Elements of a value that are not finite.
struct NonFiniteCounts {
  int64_t nan = 0, inf = 0;
  bool minus_only = true;  ///< every one is -inf
  int64_t all() const { return nan + inf; }
};
/// Counts them; a complex element is NaN if a part is, else Inf if a part is.
NonFiniteCounts CountNonFinite(const Array& array);

/// Whether every element is finite, in all rows of selected rows and in all
/// tensors of a tensor array. True for a tensor without bytes.
bool AllFinite(const Tensor& tensor);

class DeviceNonFinite;

class NanCheck : public StepHook {
 public:
  /// `plan` outlives the check. Null rules: those of the environment;
  /// InvalidArgument when they are malformed.
  static absl::StatusOr<std::unique_ptr<NanCheck>> Create(
      const Plan* plan, std::shared_ptr<const NanRules> rules);
  ~NanCheck() override;

  void Before(size_t) override {}
  /// FailedPrecondition with the output's name and its counts of NaN and Inf.
  /// For a step on a device the check is only started; Finish has its result.
  absl::Status After(size_t step) override;
  absl::Status AfterInBlock(const BlockStep& step) override;
  /// Called after a run that ended with the status `ran`. Returns the error of
  /// the first step, in their order, that failed a check since the last Finish,
  /// else `ran`.
  absl::Status Finish(const absl::Status& ran);

  /// The values that the next runs check: none; enough of them to find any NaN
  /// or Inf in a watched value, though possibly at a later op (nan_witness.h);
  /// all of them, so that the first bad output is found.
  enum class Level { kOff, kQuick, kAll };
  void set_level(Level level) { level_ = level; }
  /// The largest magnitude of the variables that the rules follow, in the runs
  /// since the last call.
  double TakeLargest() { return std::exchange(largest_, 0.0); }

  /// The output that the last error was about.
  const NonFiniteOutput& found() const { return found_; }

 private:
  struct Watched {
    const Tensor* tensor = nullptr;
    const std::string* name = nullptr;
    bool infinities = false;  // they are meant
    bool mask = false;        // -inf is meant
    bool followed = false;
    bool skipped = false;
    bool quick = true;
    int64_t number = -1;  // of the value that a device looks at
  };
  NanCheck(const Plan* plan, std::shared_ptr<const NanRules> rules);
  void Prepare();
  absl::Status PrepareDevice();
  absl::Status Judge(const Watched& watched, const OpDesc& op);
  absl::Status Report(const Watched& watched, const OpDesc& op, int64_t nan,
                      int64_t inf);
  absl::Status AfterOnDevice(size_t step);

  const Plan* plan_;
  std::shared_ptr<const NanRules> rules_;
  std::vector<std::vector<Watched>> steps_;
  Level level_ = Level::kAll;
  double largest_ = 0;
  NonFiniteOutput found_;
  std::unique_ptr<DeviceNonFinite> non_finite_;  // where steps are on a device
  bool asked_device_ = false;  // there is something to ask it for
};

/// FailedPrecondition that IsNanFound knows.
absl::Status NanFound(const std::string& message);
/// True for the errors of a NanCheck, annotated or not.
bool IsNanFound(const absl::Status& status);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_NAN_CHECK_H_
