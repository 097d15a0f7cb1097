// SPDX-License-Identifier: Apache-2.0
// A step over shards measured in one process, for what several would take.
#ifndef PD_LIBCORE_PROFILE_MEASURE_STEP_H_
#define PD_LIBCORE_PROFILE_MEASURE_STEP_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "libcore/dist/step_model.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/passes/pipeline.h"

namespace pd {

struct MeasureOptions {
  int64_t steps = 20;  ///< at most, of which the first tenth warms up
  double seconds = 0;  ///< ends after so long, with three steps at least; 0: no
  PassOptions passes;
  std::function<int()>
      stop;  ///< asked after each step: not 0 ends; may be null
};

struct MeasuredStep {
  StepTimeline timeline;  ///< medians over steps
  int64_t steps = 0;      ///< that were measured
  int64_t records = 0;    ///< of a step
};

/// Runs steps of the job, which needs loss, optimizer, data.train and
/// distributed, over its data, in this process. Nothing is saved.
/// Unimplemented for a job with sharded states, which exchanges something else.
absl::StatusOr<MeasuredStep> MeasureStep(const OpRegistry& registry,
                                         const LoadedJob& job,
                                         const MeasureOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_MEASURE_STEP_H_
