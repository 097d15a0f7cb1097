// SPDX-License-Identifier: Apache-2.0
// The state_dict of PaddlePaddle's learning rate schedulers: what stands under
// "LR_Scheduler" in a .pdopt.
#ifndef PD_LIBCORE_OPTIM_LR_STATE_H_
#define PD_LIBCORE_OPTIM_LR_STATE_H_

#include <cstdint>

#include "formats/pickle.h"
#include "libcore/optim/lr_schedule.h"

namespace pd {

/// The scheduler's state after `step` calls of its step(): the next rate is
/// that of step `step`. `schedule` has passed Check.
PickleDict SchedulerState(const LrSchedule& schedule, int64_t step);

/// The same of one that has seen `step` values of its metric.
PickleDict SchedulerState(const ReduceOnPlateau& plateau, int64_t step);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_LR_STATE_H_
