// SPDX-License-Identifier: Apache-2.0
// Where the time of a plan's runs goes, op type by op type.
#ifndef PD_LIBCORE_EXEC_STEP_TIMES_H_
#define PD_LIBCORE_EXEC_STEP_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/exec/plan.h"

namespace pd {

class StepTimes : public StepHook {
 public:
  /// `plan` outlives the times.
  explicit StepTimes(const Plan* plan)
      : plan_(plan), seconds_(plan->steps().size()) {}
  void Before(size_t step) override;
  absl::Status After(size_t step) override;

  /// The time of the steps of one op type that one implementation ran.
  struct Share {
    std::string op_type;
    std::string implementation;
    int64_t steps = 0;   ///< in the plan
    double seconds = 0;  ///< in all runs together
  };
  /// The largest first.
  std::vector<Share> ByOpType() const;

 private:
  const Plan* plan_;
  std::vector<double> seconds_;  // by step
  double begin_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_STEP_TIMES_H_
