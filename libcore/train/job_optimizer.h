// SPDX-License-Identifier: Apache-2.0
// The optimizer and schedule that a job asks for, as libcore/optim knows them.
#ifndef PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_
#define PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "formats/pickle.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/optim/optimizer.h"

namespace pd {
namespace job {
class LRScheduler;  // libcore/nn/job_optimizer.pb.h
class Optimizer;
}  // namespace job

/// An `optimizer` of the job, its learning rate being that of the first step.
absl::StatusOr<OptimizerSpec> OptimizerOf(const LoadedJob& job,
                                          const job::Optimizer& optimizer);

/// The learning rate by step and epoch (both from 0), from `optimizer.lr`.
absl::StatusOr<std::function<double(int64_t step, int64_t epoch)>> RateOf(
    const LoadedJob& job, const job::Optimizer& optimizer);

/// The same from `lr`, a field of `owner`, that begins with `base`.
absl::StatusOr<std::function<double(int64_t step, int64_t epoch)>> RateOf(
    const LoadedJob& job, const google::protobuf::Message& owner,
    const job::LRScheduler& lr, double base);

/// A parameter with its gradient and what the job says of it.
ParamGrad ParamGradOf(const ParameterSettings& settings,
                      const std::string& gradient);

/// The state_dict of PaddlePaddle's scheduler object when the run stands at
/// `state`; none where the job has no schedule. InvalidArgument with its place
/// for a schedule whose arguments are out of range.
absl::StatusOr<std::optional<PickleDict>> SchedulerStateOf(
    const LoadedJob& job, const TrainState& state);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_JOB_OPTIMIZER_H_
