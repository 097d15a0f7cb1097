// SPDX-License-Identifier: Apache-2.0
// FLAGS_check_nan_inf: stops at the first op whose output holds NaN or Inf.
#ifndef PD_LIBCORE_EXEC_NAN_CHECK_H_
#define PD_LIBCORE_EXEC_NAN_CHECK_H_

#include "libcore/exec/plan.h"

namespace pd {

class NanCheck : public StepHook {
 public:
  /// `plan` outlives the check.
  explicit NanCheck(const Plan* plan) : plan_(plan) {}
  void Before(size_t) override {}
  /// FailedPrecondition with the output's name and its counts of NaN and Inf.
  absl::Status After(size_t step) override;

 private:
  const Plan* plan_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_NAN_CHECK_H_
