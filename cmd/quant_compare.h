// SPDX-License-Identifier: Apache-2.0
// A model before and after: a job's evaluation set judges both.
#ifndef PD_CMD_QUANT_COMPARE_H_
#define PD_CMD_QUANT_COMPARE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The model as a file of this name would give it.
LoadedModel AsLoaded(const InferenceModel& model, const std::string& path);

class QuantJudge {
 public:
  /// The metric "" is the job's first, or its loss. Errors of the job, and a
  /// metric that it does not have, are usage errors. `registry` outlives it.
  static absl::StatusOr<std::unique_ptr<QuantJudge>> Open(
      const OpRegistry* registry, const std::string& config,
      const std::string& metric);

  /// The metric of `model`; `label` is what the progress bar says.
  absl::StatusOr<double> Evaluate(const InferenceModel& model,
                                  const std::string& label);

  const std::string& metric() const { return metric_; }
  /// How much worse `after` is, in hundredths; negative when better.
  double Drop(double before, double after) const;

 private:
  QuantJudge(const OpRegistry* registry, LoadedJob job)
      : registry_(registry), job_(std::move(job)) {}

  const OpRegistry* registry_;
  LoadedJob job_;
  std::unique_ptr<Loader> loader_;
  TrainProgram program_;
  std::string metric_;
  bool larger_is_better_ = true;
};

}  // namespace pd

#endif  // PD_CMD_QUANT_COMPARE_H_
