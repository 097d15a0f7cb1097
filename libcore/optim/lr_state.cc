// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/lr_state.h"

#include <algorithm>
#include <variant>

namespace pd {

PickleDict SchedulerState(const LrSchedule& schedule, int64_t step) {
  PickleDict state;
  state.Add("last_epoch", PickleValue{step});
  state.Add("last_lr", PickleValue{schedule.At(step)});
  const auto* warmup = std::get_if<LinearWarmup>(&schedule.rule());
  // A plain number that follows the warmup has no state.
  if (warmup == nullptr ||
      std::holds_alternative<ConstantLR>(warmup->after->rule()))
    return state;
  const int64_t after = std::max<int64_t>(step - warmup->warmup_steps, 0);
  state.Add("LinearWarmup_LR",
            PickleValue{SchedulerState(*warmup->after, after)});
  return state;
}

PickleDict SchedulerState(const ReduceOnPlateau& plateau, int64_t step) {
  PickleDict state;
  state.Add("cooldown_counter", PickleValue{plateau.cooldown_counter});
  state.Add("best", plateau.has_best ? PickleValue{plateau.best}
                                     : PickleValue{PickleNone()});
  state.Add("num_bad_epochs", PickleValue{plateau.num_bad_epochs});
  state.Add("last_epoch", PickleValue{step});
  state.Add("last_lr", PickleValue{plateau.learning_rate});
  return state;
}

}  // namespace pd
