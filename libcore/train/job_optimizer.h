// SPDX-License-Identifier: Apache-2.0
// The optimizer and schedule that a job asks for, as libcore/optim knows them.
#ifndef PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_
#define PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// The job's `optimizer`, its learning rate being that of the first step.
absl::StatusOr<OptimizerSpec> OptimizerOf(const LoadedJob& job);

/// The learning rate by step and epoch (both from 0), from `optimizer.lr`.
absl::StatusOr<std::function<double(int64_t step, int64_t epoch)>> RateOf(
    const LoadedJob& job);

/// A parameter with its gradient and what the job says of it.
ParamGrad ParamGradOf(const ParameterSettings& settings,
                      const std::string& gradient);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_
