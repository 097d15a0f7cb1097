// SPDX-License-Identifier: Apache-2.0
// Ranges and thresholds of activations, from a model run over a few hundred
// records.
#ifndef PD_LIBCORE_QUANT_CALIBRATE_H_
#define PD_LIBCORE_QUANT_CALIBRATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/quant/observe.h"
#include "libcore/quant/thresholds.h"

namespace pd {

struct CalibrationOptions {
  QuantAlgorithm algorithm = QuantAlgorithm::kHist;
  double percentile = kHistogramPercentile;  ///< of kHist
  int64_t most_batches = 0;                  ///< 0: all
  /// Counts values for people to look at.
  bool histograms = false;
  BatchProgress progress;
};

/// Statistics of one variable.
struct ActivationStats {
  ValueRange range;
  double threshold = 0;         ///< 0: nothing but zeros came by
  double signed_threshold = 0;  ///< ThresholdFinder::SignedThreshold
  std::optional<Histogram> histogram;
};

struct Calibration {
  int64_t records = 0, batches = 0;
  /// Variables that came by with elements; others are missing.
  std::map<std::string, ActivationStats> variables;
};

/// Runs `model` over the loader's data and looks at `observed`. Aborted, with
/// batch, records and variable, where a value is NaN or infinite.
absl::StatusOr<Calibration> Calibrate(OpRegistry* registry,
                                      const InferenceModel& model,
                                      const std::vector<std::string>& observed,
                                      Loader* loader,
                                      const CalibrationOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_CALIBRATE_H_
