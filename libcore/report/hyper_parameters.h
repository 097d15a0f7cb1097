// SPDX-License-Identifier: Apache-2.0
// The numbers of a job that one turns to make a run better.
#ifndef PD_LIBCORE_REPORT_HYPER_PARAMETERS_H_
#define PD_LIBCORE_REPORT_HYPER_PARAMETERS_H_

#include <vector>

#include "formats/log_record.h"
#include "libcore/nn/job.h"

namespace pd {

/// The job's settings of the optimizer, the batch, the length and the seed, by
/// path ("optimizer.adamw.learning_rate"), with defaults that hold.
std::vector<LogParameter> HyperParametersOf(const LoadedJob& job);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_HYPER_PARAMETERS_H_
