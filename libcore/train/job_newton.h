// SPDX-License-Identifier: Apache-2.0
// A job's quasi-Newton methods, whose steps evaluate a batch several times.
#ifndef PD_LIBCORE_TRAIN_JOB_NEWTON_H_
#define PD_LIBCORE_TRAIN_JOB_NEWTON_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/optim/optimizer.h"
#include "libcore/optim/quasi_newton.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace job {
class Optimizer;  // libcore/nn/job_optimizer.pb.h
}

bool IsQuasiNewton(const job::Optimizer& optimizer);

/// The method of the job's optimizer; none where it is another one.
/// InvalidArgument, at its place, for parts of the job that do not go with it.
absl::StatusOr<std::optional<QuasiNewtonSpec>> QuasiNewtonOf(
    const LoadedJob& job);

/// Fills in program->newton: `program->main` makes the gradients of `pairs`.
/// Unimplemented for gradients that are not dense float32, and for what
/// parameters say of their own updates.
absl::Status AddNewton(const OpRegistry& registry, const QuasiNewtonSpec& spec,
                       const std::vector<ParamGrad>& pairs,
                       TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_JOB_NEWTON_H_
