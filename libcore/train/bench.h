// SPDX-License-Identifier: Apache-2.0
// Benchmarks of a training step or an inference: synthetic batches, made once,
// used in turn, so that neither disk nor decoding is measured.
#ifndef PD_LIBCORE_TRAIN_BENCH_H_
#define PD_LIBCORE_TRAIN_BENCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/plan.h"
#include "libcore/exec/step_times.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/passes/amp.h"
#include "libcore/passes/pipeline.h"

namespace pd {

struct BenchOptions {
  double seconds = 5;  ///< of measured steps; 0: the first step only
  int64_t batch = 0;   ///< 0: the job's
  uint64_t seed = 0;
  bool times = false;  ///< also take the times of the ops
  PassOptions passes;
  std::optional<AmpSpec> amp;  ///< of inference
};

struct BenchReport {
  std::string workload;  ///< the job's or model's name
  std::string mode;      ///< "train" or "infer"
  int64_t batch = 0;
  double first_step_s = 0;  ///< from process start to the end of step one
  int64_t steps = 0;        ///< measured
  double step_ms_median = 0;
  double step_ms_p90 = 0;
  double samples_per_s = 0;  ///< records of a step / median
  /// Where plans check for NaN and Inf, every other group of steps does not:
  /// the median of those, in the same run. Else 0.
  double unchecked_ms_median = 0;
  double peak_rss_mb = 0;     ///< of the process
  double peak_device_mb = 0;  ///< of the GPU's memory; 0 on a CPU
  double first_value = 0;     ///< the loss, or the first output's first element
  double last_value = 0;
  /// Where they were asked for: of all runs, the largest first.
  std::vector<StepTimes::Share> times;
};

/// Times the job's training step: forward, backward, update, and reading the
/// loss; with phases and copies, all of a step's. The job needs no data.
absl::StatusOr<BenchReport> BenchTraining(const OpRegistry& registry,
                                          const LoadedJob& job,
                                          const BenchOptions& options);

/// Times a model's inference from arrays in memory to the first output read.
/// `shapes` overrides the shapes of feeds; unknown first extents are the batch.
absl::StatusOr<BenchReport> BenchInference(const OpRegistry& registry,
                                           const LoadedModel& model,
                                           const std::vector<FeedSpec>& shapes,
                                           const BenchOptions& options);

/// Seconds since this process was started (resolution 10 ms).
double SecondsSinceProcessStart();

/// The largest resident memory of this process so far.
double PeakRssMegabytes();

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_BENCH_H_
