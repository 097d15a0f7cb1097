// SPDX-License-Identifier: Apache-2.0
// Post-training quantization: from a model and a calibration set to integers.
#ifndef PD_LIBCORE_QUANT_QUANTIZE_H_
#define PD_LIBCORE_QUANT_QUANTIZE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/quant/adaround.h"
#include "libcore/quant/calibrate.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

struct QuantizeOptions {
  CalibrationOptions calibration;
  WeightOptions weights;
  SkipList skips;
  bool learn_rounding = false;  ///< adaround.h
  BatchProgress rounding_progress;
  /// Which form is written: they differ in thresholds (mse, emd) and in what
  /// becomes of values that are never negative.
  enum class Form { kLinear, kFake, kOnnx };
  Form form = Form::kLinear;
};

struct QuantizeResult {
  Quantization quantization;
  Calibration calibration;
  std::vector<RoundingGain> roundings;  ///< where they were learned
};

/// Plans, calibrates and rounds the weights. Ops whose input was never seen, or
/// was nothing but zeros, are left in float with a reason. Errors: those of
/// PlanQuantization, Calibrate and QuantizeWeight; FailedPrecondition where
/// nothing is left to quantize.
absl::StatusOr<QuantizeResult> QuantizeModel(OpRegistry* registry,
                                             const InferenceModel& model,
                                             Loader* loader,
                                             const QuantizeOptions& options);

/// Plans and rounds weights alone, which needs no calibration; activations stay
/// in float. With `weight_scales` those alone that WithWeightScales can write.
/// Errors: those of PlanQuantization and QuantizeWeight; FailedPrecondition for
/// a model without weights to quantize.
absl::Status PlanWeightsOnly(const InferenceModel& model, const SkipList& skips,
                             const WeightOptions& options, bool weight_scales,
                             Quantization* q);

/// The integers of the plan's weights.
absl::Status QuantizeWeights(const InferenceModel& model,
                             const WeightOptions& options, Quantization* q);

/// Bytes of the parameters' values.
size_t ParameterBytes(const InferenceModel& model);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_QUANTIZE_H_
