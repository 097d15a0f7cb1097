// SPDX-License-Identifier: Apache-2.0
// How far a quantized model is from the one it was made of.
#ifndef PD_LIBCORE_QUANT_LAYER_ERRORS_H_
#define PD_LIBCORE_QUANT_LAYER_ERRORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/quant/observe.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

/// Of a variable that both models compute: x in float, q in the other.
struct ValueError {
  std::string variable;
  double signal = 0;   ///< sum of x^2
  double noise = 0;    ///< sum of (x - q)^2
  double other = 0;    ///< sum of q^2
  double product = 0;  ///< sum of x q

  /// 10 log10(signal / noise) in dB; infinite without noise.
  double Sqnr() const;
  /// Of the angle between x and q; 1 where both are zero.
  double Cosine() const;
};

/// Runs both models on the same batches, op by op side by side, and compares
/// `variables`, which have the same names in both.
absl::StatusOr<std::vector<ValueError>> CompareModels(
    OpRegistry* registry, const InferenceModel& model,
    const InferenceModel& quantized, const std::vector<std::string>& variables,
    Loader* loader, int64_t most_batches, const BatchProgress& progress);

/// The error at the model's outputs from quantizing one op alone.
struct Sensitivity {
  std::string type, output;
  double sqnr = 0;  ///< of all outputs together, dB
};

/// One entry an op of the plan, the most sensitive first. `progress` counts
/// ops.
absl::StatusOr<std::vector<Sensitivity>> MeasureSensitivity(
    OpRegistry* registry, const InferenceModel& model,
    const Quantization& quantization, Loader* loader, int64_t most_batches,
    const BatchProgress& progress);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_LAYER_ERRORS_H_
