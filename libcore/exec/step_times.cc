// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/step_times.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libcore/base/clock.h"
#include "libcore/base/status_macros.h"

namespace pd {

void StepTimes::Before(size_t) { begin_ = SteadySeconds(); }

absl::Status StepTimes::After(size_t step) {
  // A GPU's step has only been started.
  if (plan_->steps()[step].on_device)
    PD_RETURN_IF_ERROR(plan_->place()->device->Synchronize());
  seconds_[step] += SteadySeconds() - begin_;
  return absl::OkStatus();
}

std::vector<StepTimes::Share> StepTimes::ByOpType() const {
  std::map<std::pair<std::string, std::string>, Share> shares;
  for (size_t i = 0; i < seconds_.size(); ++i) {
    const StepInfo& info = plan_->steps()[i];
    Share& share = shares[{info.op_type, info.implementation}];
    share.op_type = info.op_type;
    share.implementation = info.implementation;
    ++share.steps;
    share.seconds += seconds_[i];
  }
  std::vector<Share> sorted;
  for (auto& [key, share] : shares) sorted.push_back(std::move(share));
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace pd
