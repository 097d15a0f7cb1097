// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/in_order.h"

#include <algorithm>
#include <utility>

#include "libcore/base/status_macros.h"

namespace pd {

Step InOrder(std::vector<Step> steps) {
  const auto is_null = [](const Step& step) { return step == nullptr; };
  steps.erase(std::remove_if(steps.begin(), steps.end(), is_null), steps.end());
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  return [steps = std::move(steps)](const RunContext& run) -> absl::Status {
    for (const Step& step : steps) PD_RETURN_IF_ERROR(step(run));
    return absl::OkStatus();
  };
}

}  // namespace pd
