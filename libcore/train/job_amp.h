// SPDX-License-Identifier: Apache-2.0
// The mixed precision that a job asks for.
#ifndef PD_LIBCORE_TRAIN_JOB_AMP_H_
#define PD_LIBCORE_TRAIN_JOB_AMP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/optim/loss_scaling.h"
#include "libcore/passes/amp.h"

namespace pd {

struct JobAmp {
  AmpSpec precision;
  LossScalingSpec scaling;
};

/// The job's `amp`; nothing without one or at level O0. An error carries
/// FILE:LINE:COLUMN.
absl::StatusOr<std::optional<JobAmp>> AmpOf(const LoadedJob& job);

/// Says once in the log what this CPU makes of the type, where it computes:
/// bfloat16 without avx512_bf16, or float16, is slower than float32.
void WarnOfSlowHalves(const OpRegistry& registry, DType dtype);

/// Says in the log when the factor of the loss changes.
class ScaleWatch {
 public:
  /// `what` comes behind the step's number in messages: ", phase 'd'".
  explicit ScaleWatch(std::string what = "") : what_(std::move(what)) {}
  /// Sets the factor before the first step.
  void Begin(float scale) { last_ = scale; }
  void AfterStep(int64_t step, float now);

 private:
  std::string what_;
  float last_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_JOB_AMP_H_
