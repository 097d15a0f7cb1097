// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a program that is trained: the forward part is rewritten
// and its loss scaled before the gradients are appended, the gradients are
// divided after that.
#ifndef PD_LIBCORE_TRAIN_FORWARD_AMP_H_
#define PD_LIBCORE_TRAIN_FORWARD_AMP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/optim/loss_scaling.h"
#include "libcore/optim/optimizer.h"
#include "libcore/train/job_amp.h"

namespace pd {

/// Mixed precision, as far as a program has it.
struct ForwardAmp {
  std::optional<JobAmp> job;
  std::optional<LossScalingVars> scaling;

  /// The variable with the factor of the loss; "" where there is none.
  std::string scale() const {
    return scaling.has_value() ? scaling->scale : "";
  }
};

/// Rewrites the forward program `*main` as the job's `amp` asks for; leaves it
/// alone where the job has none. `*loss`, of one element, is float32 then;
/// `*target` is the variable to be differentiated: the loss, or its product
/// with the factor. Errors carry FILE:LINE:COLUMN.
absl::StatusOr<ForwardAmp> ApplyAmp(const LoadedJob& job,
                                    const OpRegistry& registry,
                                    ProgramDesc* main, ProgramDesc* startup,
                                    std::string* loss, std::string* target);

/// After the gradients: divides them by the factor, where there is one, and
/// has the optimizer leave a step out whose gradients are not finite.
absl::Status Unscale(const ForwardAmp& amp, const std::vector<ParamGrad>& pairs,
                     BlockBuilder* main, OptimizerSpec* spec);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_FORWARD_AMP_H_
